"""Attention systems as public tutorials teach them, with their arithmetic as it is, shortcomings included.

The numbers in the names are those of the documents that the suite was started from: 000, an introduction to Transformers
with PyTorch; 001, an answer on the role of self-attention, with einsum; 003, an explanation of attention with NumPy and PyTorch.
"""
