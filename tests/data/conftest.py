from pathlib import Path

import pytest
from data_stand_ins import StandIns


@pytest.fixture
def stand_ins(tmp_path: Path) -> StandIns:
    return StandIns(tmp_path)
