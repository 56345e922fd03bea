"""What is said of how the threads wait."""

from octavo.engine.runners.llama_cpp.waiting import describe_waiting

WITH_OPENMP = "CPU : AVX2 = 1 | OPENMP = 1 | REPACK = 1 | "


def test_openmp_s_default_is_called_so() -> None:
    assert describe_waiting({"PATH": "/bin"}, WITH_OPENMP).startswith("OpenMP's default, ")


def test_settings_of_the_environment_are_named() -> None:
    environment = {"GOMP_SPINCOUNT": "100", "OMP_WAIT_POLICY": "passive"}
    said = describe_waiting(environment, WITH_OPENMP)
    assert said == "as the environment says, OMP_WAIT_POLICY=passive GOMP_SPINCOUNT=100"


def test_they_mean_nothing_to_a_library_without_openmp() -> None:
    said = describe_waiting({"OMP_WAIT_POLICY": "passive"}, "CPU : NEON = 1 | ")
    assert said == "in llama.cpp's own way, because it was built without OpenMP"
