"""Measures for model selection, on plain arrays: FPR95, AUC, average precision, differences beyond chance."""
