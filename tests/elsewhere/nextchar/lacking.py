"""What is no task."""


class Lacking:
    unit = "nothing"

    def __init__(self, config: object, device: object) -> None:
        pass
