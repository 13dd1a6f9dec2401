"""Plug-in trainers, `train(values, stream, seed, report)`, in a process of their own.

`declaration.read_declaration` says what such a trainer is, `running.train` trains one learner with it. Neither imports
the user's code here: a guard (`child`) starts a process that does, and ends it with all that it has started. While
servers are kept (`fork_servers.keep_servers`), a guard (`forking`) has one that imports the trainer, and is copied for
each learner.
"""
