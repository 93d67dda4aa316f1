"""The table that compares the providers."""

ROWS = [
    ("creates interrupted before or after a request", lambda exact, late, size: exact.points),
    ("machines doubled", lambda exact, late, size: exact.doubled),
    ("machines lost sight of", lambda exact, late, size: exact.lost),
    ("volumes, cards, addresses or groups left", lambda exact, late, size: exact.left),
    ("calls that fail five times", lambda exact, late, size: exact.failed),
    ("creates interrupted, with the request executed 0.5 s later", lambda exact, late, size: late.points),
    ("machines doubled, lost sight of; something else left", lambda exact, late, size: f"{late.doubled}, {late.lost}; {late.left}"),
    ("requests of a create", lambda exact, late, size: f"{size['create_requests']:.0f}"),
    ("requests of a list of 1,000", lambda exact, late, size: f"{size['list_requests']} ({size['listed']} listed)"),
    ("time of GetVersion", lambda exact, late, size: f"{size['version']:.0f} ms"),
    ("time of a create", lambda exact, late, size: f"{size['create']:.0f} ms"),
    ("size of the program", lambda exact, late, size: f"{size['size']:.1f} MB"),
]


def markdown(columns):
    """Returns the table. `columns`: provider -> its counts and its measures."""
    rows = [["", *columns], ["---", *("---:" for _ in columns)]]
    rows += [[title, *(str(cell(*column)) for column in columns.values())] for title, cell in ROWS]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
