"""Translating sentences: parallel text, batches by length, the Transformer, beam search and BLEU."""
