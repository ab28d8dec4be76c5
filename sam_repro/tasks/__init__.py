"""What is learnt and how it is judged: tasks fulfil the protocol of `sam_repro.engine.task` and never import it."""
