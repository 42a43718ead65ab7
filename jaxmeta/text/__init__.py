"""From text to source embeddings."""
