"""The live channel: what changed, pushed to the pages that show it.

    projection ─ projected ─► publisher ─ notice (topics, uids) ─► channel layer ─► hub of each process ─► its sockets

Channels carries only the notice. Each process's hub loads the rows once for all its sockets, encodes them once for each set
of rights, and numbers what it sends, so that a page that was away says the last number it saw and gets what it missed.
"""
