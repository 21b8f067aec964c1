"""The zoo: small scripted retailers, `heuristic:NAME`. One file each; names are file names.

To add one, write a file with a frozen class `Agent` that extends `base.Retailer`.
"""
