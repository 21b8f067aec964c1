"""The markets as environments of verifiers 0.4 (the extra `verifiers`).

    harness         asks the model inside this process, once per turn
    seats           a seat of a market as an agent that awaits turns
    table           opens the seats of one episode and plays it on the episode's own event loop
    magentic, bench, entry      one environment each; `environments/` holds their thin packages

Nothing below this folder imports verifiers.
"""
