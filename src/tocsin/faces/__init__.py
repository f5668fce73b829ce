"""How the world reaches the service; a face never imports a face."""
