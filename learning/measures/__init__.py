"""Figures that models are chosen by, of arrays alone: FPR95, AUC, average precision, differences beyond chance."""
