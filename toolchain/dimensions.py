"""Sizes of grids and thread blocks on a command line."""

import click


class Dimensions(click.ParamType):
    """X, X,Y or X,Y,Z, each at least 1."""

    name = "X[,Y[,Z]]"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int, int]:
        """Return x, y and z."""
        numbers = str(value).split(",")
        if len(numbers) > 3 or not all(number.isascii() and number.isdecimal() for number in numbers):
            self.fail(f"'{value}' is not X, X,Y or X,Y,Z.", param, ctx)
        x, y, z = ([int(number[:12]) for number in numbers] + [1, 1])[:3]
        return x, y, z
