"""The zoo: small scripted agents, `heuristic:NAME`. One file each; names are file names.

To add one, write a file with a frozen class `Agent` that extends what its kind shares: retailers
`base.Retailer`, buyers and sellers of the two-sided market `agents.buying` and `agents.selling`.
"""
