"""The table that compares the providers."""

ROWS = [
    ("creates interrupted", lambda count, _: count.points),
    ("machines doubled", lambda count, _: count.doubled),
    ("machines lost sight of", lambda count, _: count.lost),
    ("volumes, cards, addresses or groups left", lambda count, _: count.left),
    ("calls that fail five times", lambda count, _: count.failed),
    ("requests of a create", lambda _, size: f"{size['create_requests']:.0f}"),
    ("requests of a list of 1,000", lambda _, size: f"{size['list_requests']} ({size['listed']} listed)"),
    ("time of GetVersion", lambda _, size: f"{size['version']:.0f} ms"),
    ("time of a create", lambda _, size: f"{size['create']:.0f} ms"),
    ("size of the program", lambda _, size: f"{size['size']:.1f} MB"),
]


def markdown(columns):
    """Returns the table. `columns`: provider -> its count and its measures."""
    rows = [["", *columns], ["---", *("---:" for _ in columns)]]
    rows += [[title, *(str(cell(*column)) for column in columns.values())] for title, cell in ROWS]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
