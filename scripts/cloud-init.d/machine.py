"""Simulates a boot up to the point where cloud-init has read its user data, with cloud-init's own code in a temporary directory."""

import importlib
import logging
import os
import pathlib
import sys
import tempfile

from cloudinit import sources, stages, util
from cloudinit.config.schema import SchemaValidationError, get_schema, validate_cloudconfig_schema
from cloudinit.settings import PER_INSTANCE

# Hundreds of machines are created. With their files in memory, that takes seconds.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK | os.X_OK) else None
INSTANCE_DATA = '{"v1": {"instance_id": "i-1", "local_hostname": "blue"}}'


class WarningLog(logging.Handler):
    """Collects the warnings of cloud-init."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


class StaticDataSource(sources.DataSource):
    dsname = "Static"

    def __init__(self, init, blob):
        super().__init__({}, init.distro, init.paths)
        self.metadata = {"instance-id": "i-1"}
        self.userdata_raw = blob


class Machine:
    """The result of reading user data: `parts` as (type, content), the merged `config`, the written `files`, `ran`, `warnings`."""

    def __init__(self, blob):
        log = WarningLog()
        logging.getLogger().handlers = [log]
        path = list(sys.path)
        with tempfile.TemporaryDirectory(dir=MEMORY) as home:
            home = pathlib.Path(home)
            os.environ["RAN"] = str(home / "ran")
            try:
                self.boot(home, blob)
            except Exception as error:  # any error stops the boot
                self.parts, self.config, self.files, self.ran = [], None, {}, ""
                log.lines.append(f"stopped: {error}")
        self.warnings = log.lines
        # A part handler is a module of this process. Remove it, so that the next machine does not have it.
        sys.path[:] = path
        for name in [name for name in sys.modules if name.startswith("part-handler")]:
            del sys.modules[name]
        importlib.invalidate_caches()

    def boot(self, home, blob):
        init = stages.Init()
        init._cfg = {"system_info": {"paths": {"cloud_dir": str(home / "cloud"), "run_dir": str(home / "run")},
                                     "distro": "debian"}}
        init.datasource = init.paths.datasource = StaticDataSource(init, blob)
        for directory in ("cloud/instance", "cloud/handlers", "cloud/instances/i-1/handlers", "run"):
            (home / directory).mkdir(parents=True)
        pathlib.Path(init.paths.get_runpath("instance_data_sensitive")).write_text(INSTANCE_DATA)
        self.parts = [(part.get_content_type(), util.fully_decoded_payload(part))
                      for part in init.datasource.get_userdata().walk() if part.get_content_maintype() != "multipart"]
        instance = pathlib.Path(init.paths.get_ipath("cloud_config")).parent
        init.consume_data(PER_INSTANCE)
        merged = instance / "cloud-config.txt"
        self.config = util.load_yaml(merged.read_text() if merged.exists() else "", default={}) or {}
        self.files = {str(path.relative_to(home)): path.read_bytes()
                      for directory in (home / "cloud/instance/scripts", instance / "boothooks", instance / "handlers")
                      for path in sorted(directory.rglob("*")) if path.is_file() and path.suffix != ".pyc"}
        self.ran = (home / "ran").read_text() if (home / "ran").exists() else ""


def schema_problem(config):
    """Returns the problem that cloud-init's schema finds in a config, or None."""
    try:
        validate_cloudconfig_schema(config, schema=get_schema(), strict=True)
    except SchemaValidationError as error:
        return str(error)
    return None
