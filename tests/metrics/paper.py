"""Tables 1 to 3 of the marketplace-evaluation paper, in percent."""

F1 = {
    "Qwen3": 60.24,
    "Kimi K2.5": 42.51,
    "Llama 3.3": 27.74,
    "DeepSeek V3.2": 27.59,
    "Grok 4.1": 19.21,
    "Gemini 2.5": 16.83,
    "GPT-OSS": 14.42,
}
FAIR = dict(zip(F1, (28.89, 20.38, 13.30, 13.23, 9.21, 8.07, 6.91), strict=True))
FAIR_WITHOUT_QWEN = dict(zip(list(F1)[1:], (28.66, 18.71, 18.60, 12.95, 11.35, 9.72), strict=True))
FAIR_WITHOUT_DEEPSEEK = {
    "Qwen3": 33.30,
    "Kimi K2.5": 23.49,
    "Llama 3.3": 15.33,
    "Grok 4.1": 10.62,
    "Gemini 2.5": 9.30,
    "GPT-OSS": 7.97,
}

# share (change against fair share), as printed
TABLE_2_BEFORE = {
    "Kimi K2.5": (29.4, 0.74),
    "DeepSeek V3.2": (21.0, 2.4),
    "Llama 3.3": (14.4, -4.31),
    "Grok 4.1": (13.8, 0.85),
    "GPT-OSS": (12.8, 3.08),
    "Gemini 2.5": (8.6, -2.75),
}
TABLE_2_AFTER = {
    "Qwen3": (36.0, 7.11),
    "Kimi K2.5": (29.4, 8.62),
    "DeepSeek V3.2": (11.6, -1.63),
    "Gemini 2.5": (6.6, -1.47),
    "GPT-OSS": (6.4, -0.51),
    "Llama 3.3": (5.6, -7.7),
    "Grok 4.1": (4.4, -4.81),
}
TABLE_3_BEFORE = {
    "Qwen3": (51.6, 22.71),
    "Kimi K2.5": (14.8, -5.58),
    "Llama 3.3": (10.6, -2.70),
    "Grok 4.1": (9.6, 0.39),
    "GPT-OSS": (7.4, 0.49),
    "Gemini 2.5": (6.0, -2.07),
}
TABLE_3_AFTER = {
    "Qwen3": (57.8, 28.91),
    "Kimi K2.5": (15.8, -4.58),
    "DeepSeek V3.2": (12.0, -1.23),
    "Llama 3.3": (4.6, -8.70),
    "GPT-OSS": (4.2, -2.71),
    "Gemini 2.5": (3.2, -4.87),
    "Grok 4.1": (2.4, -6.81),
}
POOLED_HHI = [
    (TABLE_2_BEFORE, 1940.96),
    (TABLE_2_AFTER, 2430.16),
    (TABLE_3_BEFORE, 3176.88),
    (TABLE_3_AFTER, 3789.28),
]
