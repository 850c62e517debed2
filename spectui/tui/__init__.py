"""The dashboard: Textual screens and widgets that show snapshots and send commands, and never measure."""
