"""Figures by kind. A kind is a file here with a `draw`; it gets numbers alone and knows neither runs nor studies."""
