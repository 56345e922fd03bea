"""What stands between the values of JSON: at most a blank, or a line break with an indentation."""

_SPACE = r"( |\n[ \t]{0,64})?"
OPEN_OBJECT = rf"/\{{{_SPACE}/"
CLOSE_OBJECT = rf"/{_SPACE}\}}/"
OPEN_ARRAY = rf"/\[{_SPACE}/"
CLOSE_ARRAY = rf"/{_SPACE}\]/"
COMMA = rf"/,{_SPACE}/"
COLON = "/: ?/"
