/**
 * The command line on a real QEMU, with every device at once: QEMU starts in its sandbox and puts each device at the
 * address of the definition, and the firmware numbers the buses as the layout expects.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, suite, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { pciAddressToMap } from '#api/devices/pci-address.ts';
import { defineDomain } from '#node/definition/define-domain.ts';
import type { Medium } from '#node/definition/devices/disk.ts';
import { toLearnedDevices } from '#node/hardware/to-learned-devices.ts';
import { everyDevice } from '#node/definition/testing/every-device.ts';
import { formatNodeName } from '#node/hypervisor/qemu/arguments/block-nodes.ts';
import { HARDWARE_SPECS } from '#node/hypervisor/qemu/arguments/testing/golden-hardware.ts';
import { inputOf } from '#node/hypervisor/qemu/arguments/testing/golden-specs.ts';
import { qemuArguments } from '#node/hypervisor/qemu/arguments/qemu-arguments.ts';

const QEMU = 'qemu-system-x86_64';
const missing = [QEMU, 'swtpm', 'qemu-img'].filter((name) => spawnSync(name, ['--version']).error !== undefined);
const skip = missing.length > 0 && `${missing.join(', ')} not installed`;
const OVMF_CODE = '/usr/share/OVMF/OVMF_CODE_4M.fd';
const OVMF_VARS = '/usr/share/OVMF/OVMF_VARS_4M.fd';
const DEADLINE_MS = 20_000;

interface PciDevice {
  bus: number;
  slot: number;
  function: number;
  qdev_id: string;
  pci_bridge?: { bus: { secondary: number }; devices?: PciDevice[] };
}

suite('QEMU with every device', { skip, timeout: 60_000 }, () => {
  const dir = mkdtempSync(join(tmpdir(), 'selfsame-arguments-'));
  const children: ChildProcess[] = [];
  const definition = everyDevice(mediaIn(dir), { bridge: false });
  let qmp: Socket;
  let execute: (command: string, args?: object) => Promise<unknown>;

  before(async () => {
    mkdirSync(join(dir, 'tpm'));
    const control = { tpmstate: 'dir=tpm', ctrl: 'type=unixio,path=tpm.sock' };
    const tpm = ['socket', '--tpm2', '--tpmstate', control.tpmstate, '--ctrl', control.ctrl, '--terminate'];
    children.push(spawn('swtpm', tpm, { cwd: dir, stdio: 'inherit' }));
    await waitUntil(() => connects(join(dir, 'tpm.sock')), 'swtpm listens');
    const args = qemuArguments(definition, {
      accelerator: 'tcg',
      qmpSocket: 'qmp.sock',
      agentSocket: 'agent.sock',
      serialSocket: 'serial.sock',
      displaySocket: 'vnc.sock',
      redirectionSocket: (deviceId: string) => `${deviceId}.sock`,
      nowMs: () => Date.UTC(2026, 0, 1),
      tpmSocket: 'tpm.sock',
      pathOf: (absolute) => absolute.replace(`${dir}/`, ''),
      tapOf: () => 'none',
    });
    const qemu = spawn(QEMU, args, { cwd: dir, stdio: 'inherit' });
    children.push(qemu);
    await waitUntil(async () => hasExited(qemu) || connects(join(dir, 'qmp.sock')), 'QEMU listens');
    qmp = connect(join(dir, 'qmp.sock'));
    const lines = createInterface({ input: qmp })[Symbol.asyncIterator]();
    await lines.next();
    execute = async (command, args_ = {}) => {
      qmp.write(JSON.stringify({ execute: command, arguments: args_ }));
      for (;;) {
        const { value, done } = await lines.next();
        assert.ok(done !== true, 'QEMU is still running');
        const answer = JSON.parse(value) as { return?: unknown; error?: { desc: string } };
        assert.equal(answer.error, undefined, `${command}: ${answer.error?.desc}`);
        if ('return' in answer) return answer.return;
      }
    };
    await execute('qmp_capabilities');
  });

  after(async () => {
    qmp?.destroy();
    for (const child of children.reverse()) {
      if (hasExited(child)) continue;
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    rmSync(dir, { recursive: true });
  });

  const pciDevices = async () => {
    const [root] = (await execute('query-pci')) as [{ devices: PciDevice[] }];
    return root.devices.flatMap((device) => [device, ...(device.pci_bridge?.devices ?? [])]);
  };

  test('waits for the command to start', async () => {
    const status = (await execute('query-status')) as { status: string };
    assert.equal(status.status, 'prelaunch');
  });

  test('disks are on the bus and unit of the definition', async () => {
    const property = (id: string, name: string) =>
      execute('qom-get', { path: `/machine/peripheral/${id}`, property: name });
    assert.match(String(await property('disk-sata', 'parent_bus')), /\/ide\.0$/);
    assert.match(String(await property('disk-iso', 'parent_bus')), /\/ide\.1$/);
    assert.match(String(await property('disk-tray', 'parent_bus')), /\/ide\.2$/);
    assert.deepEqual([await property('disk-scsi', 'lun'), await property('disk-scsi-iso', 'lun')], [0, 1]);
  });

  test('a disk can be resized by the name of its node', async () => {
    await execute('block_resize', { 'node-name': formatNodeName('disk-root'), size: 2 * 1024 * 1024 });
  });

  test('the firmware finds every device at its address', async () => {
    await execute('cont');
    const ports = definition.devices.filter(({ type }) => type === 'root-port').length;
    await waitUntil(async () => {
      const bridges = (await pciDevices()).flatMap(({ pci_bridge }) => pci_bridge ?? []);
      // SeaBIOS sets all of them to 255 before it numbers the buses.
      return bridges.filter(({ bus }) => bus.secondary > 0 && bus.secondary < 255).length === ports;
    }, 'the firmware has numbered the buses');
    const found = await pciDevices();
    for (const { id, address } of toLearnedDevices(definition)) {
      if (address?.['type'] !== 'pci') continue;
      const device = found.find(({ qdev_id }) => qdev_id === id);
      assert.ok(device !== undefined, `${id} exists`);
      const { bus, slot, function: fn } = device;
      assert.deepEqual(pciAddressToMap({ domain: 0, bus, slot, function: fn }), address, id);
    }
  });

  test('the buses contain no other devices than those of the chipset', async () => {
    const ours = new Set(definition.devices.map(({ id }) => id));
    const others = (await pciDevices()).filter(({ qdev_id }) => !ours.has(qdev_id));
    const slots = others.map(({ bus, slot, function: fn }) => `${bus}:${slot.toString(16)}.${fn}`);
    assert.deepEqual(slots, ['0:0.0', '0:1f.0', '0:1f.2', '0:1f.3']);
  });
});

suite('QEMU accepts the command line of', { skip, timeout: 60_000 }, () => {
  const taken = Object.entries(HARDWARE_SPECS).filter(([, { input }]) => input === undefined);
  for (const [name, spec] of taken) {
    test(name, async () => {
      const dir = mkdtempSync(join(tmpdir(), 'selfsame-arguments-'));
      // The test has no bridge, so all networks are pod networks.
      const plain = { ...spec, networks: spec.networks?.map((network) => ({ name: network.name, pod: {} })) };
      const nics = spec.devices?.interfaces?.map(({ bridge: _bridge, ...nic }) => nic);
      const { definition } = defineDomain(
        inputOf({ ...plain, devices: { ...spec.devices, ...(nics && { interfaces: nics }) } }),
      );
      assert.ok(definition !== undefined);
      const isEfi = definition.firmware.loader.type === 'efi';
      if (isEfi) copyFileSync(OVMF_VARS, join(dir, 'nvram.fd'));
      const args = qemuArguments(definition, {
        ...{
          accelerator: 'tcg',
          qmpSocket: 'qmp.sock',
          serialSocket: 'serial.sock',
          displaySocket: 'vnc.sock',
          agentSocket: 'agent.sock',
        },
        ...(isEfi && { nvram: 'nvram.fd', ovmfCode: OVMF_CODE }),
        redirectionSocket: (deviceId) => `${deviceId}.sock`,
        nowMs: () => Date.UTC(2026, 0, 1),
        pathOf(path) {
          const file = path.replaceAll('/', '-');
          writeFileSync(join(dir, file), '');
          truncateSync(join(dir, file), 1024 * 1024);
          return file;
        },
        tapOf: () => 'none',
      });
      const cached = args.map((arg) => arg.replaceAll('"direct":true', '"direct":false'));
      const qemu = spawn(QEMU, cached, { cwd: dir, stdio: ['ignore', 'ignore', 'pipe'] });
      let stderr = '';
      qemu.stderr.on('data', (bytes: Buffer) => (stderr += bytes.toString()));
      try {
        await waitUntil(async () => hasExited(qemu) || connects(join(dir, 'qmp.sock')), 'QEMU listens');
        assert.ok(!hasExited(qemu), stderr);
        assert.equal(stderr, '');
      } finally {
        if (!hasExited(qemu)) {
          qemu.kill('SIGKILL');
          await once(qemu, 'exit');
        }
        rmSync(dir, { recursive: true });
      }
    });
  }
});

/** Makes disks of 1 MiB each; one is an overlay on another, like ephemeral volumes. */
function mediaIn(dir: string): Map<string, Medium> {
  if (skip !== false) return new Map();
  const fileOf = (name: string) => {
    const path = join(dir, `${name}, raw.img`);
    writeFileSync(path, '');
    truncateSync(path, 1024 * 1024);
    return path;
  };
  const raw = (name: string): [string, Medium] => [
    name,
    { source: { path: fileOf(name), format: 'raw' }, readonly: name === 'data', cacheNone: false },
  ];
  const base = fileOf('base');
  const overlay = join(dir, 'scsi.qcow2');
  const made = spawnSync('qemu-img', ['create', '-q', '-f', 'qcow2', '-b', base, '-F', 'raw', overlay]);
  assert.equal(made.status, 0, made.stderr.toString());
  return new Map<string, Medium>([
    ...['root', 'data', 'sata', 'iso', 'scsi-iso', 'stick'].map(raw),
    ['scsi', { source: { path: overlay, format: 'qcow2' }, readonly: false, cacheNone: false }],
  ]);
}

const hasExited = (child: ChildProcess) => child.exitCode !== null || child.signalCode !== null;

async function connects(path: string): Promise<boolean> {
  const socket = connect(path);
  const connected = new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
  });
  return connected.finally(() => socket.destroy());
}

async function waitUntil(holds: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const deadline = AbortSignal.timeout(DEADLINE_MS);
  while (!(await holds())) {
    assert.ok(!deadline.aborted, `in time: ${what}`);
    await delay(20);
  }
}
