/** Failing starts, with shell scripts instead of QEMU. Real guests are in test/e2e/hypervisor-qemu.test.ts. */
import assert from 'node:assert/strict';
import { chmod, mkdtemp, readdir, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '#lib/clock.ts';
import { silentLog } from '#lib/log.ts';
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { aDefinition } from '#node/hypervisor/testing/a-definition.ts';
import { machineTypes, versionText } from '#node/hypervisor/qemu/capabilities.ts';
import { firmwareFiles } from '#node/hypervisor/qemu/state/firmware.ts';
import { findProcessesBelow } from '#node/hypervisor/qemu/process/process.ts';
import { createQemuHypervisor } from '#node/hypervisor/qemu/qemu-hypervisor.ts';
import { parseRunState } from '#node/hypervisor/qemu/monitor/run-state.ts';
import { tapName, tapsOf } from '#node/hypervisor/qemu/process/tap.ts';

interface FailedStart {
  /** The text of a shell script; absent if the program is missing. */
  readonly qemu?: string;
  readonly swtpm?: string;
  readonly change?: (definition: DomainDefinition) => DomainDefinition;
  readonly want: RegExp;
  readonly permanent?: boolean;
}

const withTpm = (definition: DomainDefinition): DomainDefinition => ({
  ...definition,
  devices: [...definition.devices, { type: 'tpm', id: 'tpm0', model: 'crb' }],
});

const failedStarts: Record<string, FailedStart> = {
  'QEMU is not installed': { want: /Cannot start domain "default\/guest": spawn .*ENOENT/ },
  'QEMU refuses the machine': {
    qemu: 'echo "qemu-system-x86_64: unsupported machine type" >&2; exit 1',
    want: /QEMU exited with code 1: unsupported machine type/,
    permanent: true,
  },
  'QEMU is killed': { qemu: 'kill -9 $$', want: /QEMU was killed by SIGKILL/ },
  'QEMU exits without output': { qemu: 'exit 0', want: /QEMU exited with code 0$/ },
  'the TPM does not start': {
    qemu: 'sleep 60',
    swtpm: 'echo "swtpm: no way" >&2; exit 2',
    change: withTpm,
    want: /swtpm exited with code 2: no way/,
  },
  'the firmware is missing': {
    qemu: 'sleep 60',
    change: (definition) => ({
      ...definition,
      firmware: { ...definition.firmware, loader: { type: 'efi', secureBoot: false } },
    }),
    want: /OVMF_CODE_4M\.fd" is missing; install the package ovmf/,
  },
  'QEMU exits after the TPM has started': {
    qemu: 'exit 1',
    swtpm: `exec ${process.execPath} -e 'require("net").createServer().listen("tpm.sock")' -- "$@"`,
    change: withTpm,
    want: /QEMU exited with code 1/,
  },
};

for (const [name, { qemu, swtpm, change, want, permanent = false }] of Object.entries(failedStarts)) {
  test(`a failed start leaves nothing behind: ${name}`, async () => {
    const root = await mkdtemp(join(tmpdir(), 'selfsame-failed-start-'));
    const dir = join(root, 'domains');
    const hypervisor = createQemuHypervisor({
      ...{ dir, accel: 'tcg', clock: systemClock, log: silentLog, ovmfDir: join(root, 'ovmf') },
      qemuBinary: await script(join(root, 'qemu'), qemu),
      swtpmBinary: await script(join(root, 'swtpm'), swtpm),
    });
    try {
      await hypervisor.adopt();
      const plain = aDefinition();
      const definition = change === undefined ? plain : change(plain);

      await assert.rejects(hypervisor.create(definition), (error) => {
        assert.ok(error instanceof HypervisorError);
        assert.match(error.message, want);
        return error.permanent === permanent;
      });

      assert.deepEqual(hypervisor.list(), []);
      assert.deepEqual(await readdir(dir), []);
      assert.deepEqual(await findProcessesBelow(await realpath(dir)), []);
    } finally {
      await hypervisor.close();
      await rm(root, { recursive: true });
    }
  });
}

test('refuses an id that is a path', async () => {
  const hypervisor = createQemuHypervisor({ dir: '/nowhere', accel: 'tcg', clock: systemClock, log: silentLog });
  const isPermanent = (error: unknown) => error instanceof HypervisorError && error.permanent;
  await assert.rejects(hypervisor.create(aDefinition({ id: '../../etc' })), isPermanent);
});

test('parses the machine types and the version of QEMU', () => {
  const answer = [
    { name: 'pc-q35-7.2', alias: 'q35', 'cpu-max': 288, 'is-default': false },
    { name: 'pc-i440fx-1.4', 'cpu-max': 255, deprecated: true },
    { name: 'none', 'cpu-max': 1 },
  ];
  assert.deepEqual(machineTypes(answer), [
    { name: 'pc-q35-7.2', alias: 'q35', deprecated: false, maxCpus: 288 },
    { name: 'pc-i440fx-1.4', deprecated: true, maxCpus: 255 },
  ]);
  assert.equal(versionText({ qemu: { major: 7, minor: 2, micro: 22 }, package: 'x' }), 'QEMU 7.2.22');
});

const runStates: Record<string, object> = {
  running: { state: 'running' },
  suspended: { state: 'running' },
  paused: { state: 'paused' },
  'io-error': { state: 'paused', why: 'ioError' },
  prelaunch: { state: 'never ran' },
  inmigrate: { state: 'incoming' },
  'finish-migrate': { state: 'paused', why: 'migration' },
  postmigrate: { state: 'paused', why: 'migration' },
  shutdown: { state: 'ended', how: 'shutdown' },
  'internal-error': { state: 'ended', how: 'crashed', message: 'QEMU had an internal error' },
};

for (const [status, want] of Object.entries(runStates)) {
  test(`translates the run state ${status}`, () => assert.deepEqual(parseRunState({ status }), want));
}

test('only guests with secure boot get its keys', () => {
  assert.equal(firmwareFiles({ type: 'bios' }, '/o'), undefined);
  assert.deepEqual(firmwareFiles({ type: 'efi', secureBoot: false }, '/o'), {
    code: '/o/OVMF_CODE_4M.fd',
    variables: '/o/OVMF_VARS_4M.fd',
  });
  assert.deepEqual(firmwareFiles({ type: 'efi', secureBoot: true }, '/o'), {
    code: '/o/OVMF_CODE_4M.secboot.fd',
    variables: '/o/OVMF_VARS_4M.ms.fd',
  });
});

test('only bridged interfaces have a tap device, with a unique name that the kernel accepts', () => {
  const user = aDefinition().devices.find((device) => device.type === 'interface');
  assert.ok(user !== undefined);
  const bridged = { ...user, id: 'nic-lan', backend: { type: 'bridge', bridge: 'br0' } } as const;
  const taps = tapsOf(aDefinition({ id: 'a-uid', devices: [user, bridged] }));
  assert.deepEqual(taps, [{ name: tapName('a-uid', 'nic-lan'), bridge: 'br0' }]);
  assert.match(tapName('a-uid', 'nic-lan'), /^ss-[0-9a-f]{12}$/);
  assert.notEqual(tapName('a-uid', 'nic-lan'), tapName('b-uid', 'nic-lan'));
});

async function script(path: string, text: string | undefined): Promise<string> {
  if (text === undefined) return path;
  await writeFile(path, `#!/bin/sh\n${text}\n`);
  await chmod(path, 0o755);
  return path;
}
