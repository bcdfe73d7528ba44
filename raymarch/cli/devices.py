"""`raymarch devices`: the devices of this machine, whether each computes right, and which one is taken."""

from __future__ import annotations

import click

from raymarch.cli import options, output


@click.command(epilog="Example: raymarch devices --json")
@options.as_json
def devices(as_json: bool) -> int:
    """What there is to compute on: processor and GPUs, memory, drivers, what is taken, and where kernels are kept.

    Each device is tried in a process of its own: a small march and its gradient beside NumPy's numbers. The first time
    its kernels are compiled, in up to half a minute; then it takes seconds. What fails has its cure. Exit code 1 if the
    device that is taken fails.
    """
    from raymarch import engine
    from raymarch.diagnosis.devices import examine_devices
    from raymarch.runtime.kernel_cache import kernel_folder
    from raymarch.system.versions import version_of

    found, cache = examine_devices(output.print_note), str(kernel_folder())
    if as_json:
        output.print_json({"devices": [each.record() for each in found], "cache": cache})
    else:
        for each in found:
            state = "works" if each.works else "fails" if each.name else "absent"
            size = f"{each.bytes / 1e9:.1f} GB" if each.bytes else ""
            mark = "*" if each.chosen else " "
            output.print_result(f"{mark} {each.arch:8}{state:8}{size:>9}  {each.name}".rstrip())
            output.print_result(f"{'':10}{each.why}")
        output.print_result(f"  {engine.TITLE} {version_of(engine.NAME)} compiles kernels and keeps them in {cache}")
    return 0 if all(each.works for each in found if each.chosen) else 1
