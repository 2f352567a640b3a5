/** The hypervisor interface on real QEMU guests: its conformance suite, and what only real processes can show. */
import type { Duplex } from 'node:stream';
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync } from 'node:fs';
import { access, chmod, mkdir, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { describe, it } from 'node:test';
import { systemClock } from '#lib/clock.ts';
import { newUid } from '#lib/ids.ts';
import type { Device, DomainDefinition } from '#node/hardware/domain-definition.ts';
import { hypervisorConformance } from '#node/hypervisor/testing/conformance.ts';
import { copyName } from '#node/hypervisor/qemu/arguments/block-nodes.ts';
import { findProcessesBelow, isRunning } from '#node/hypervisor/qemu/process/process.ts';
import { QmpClient } from '#node/hypervisor/qemu/monitor/qmp.ts';
import { echoDisk, READY, SHUT_DOWN, writeEchoDisk } from '#node/hypervisor/qemu/testing/echo-guest.ts';
import { isSandboxed, qemuScene, qemuSkipReason, type QemuScene } from '#node/hypervisor/qemu/testing/qemu-scene.ts';
import { guestUserOf } from '#node/hardware/guest-user.ts';
import { addTap, removeTap, tapName } from '#node/hypervisor/qemu/process/tap.ts';
import { aDisk } from '#node/hypervisor/testing/a-definition.ts';
import { waitForCopy } from '#node/hypervisor/testing/copy-cases.ts';
import { hasEnded, stateOf, waitUntil } from '#node/hypervisor/testing/scene.ts';

const skip = qemuSkipReason();
const BRIDGE = 'ss-test-br';
const IMAGE_BYTES = 32 * 2 ** 20;
const WRITTEN_AT = 4 * 2 ** 20;
const RESEND_MS = 1000;

if (skip === false) hypervisorConformance('qemu', qemuScene);

describe('qemu: a running guest', { skip, timeout: 60_000 }, () => {
  it('reads and writes its console, and reacts to the power button', async () => {
    await withScene(async (scene) => {
      const definition = await echoGuest(scene);
      const { hypervisor } = scene;
      await hypervisor.create(definition, { paused: true });
      const [first, second] = [
        await hypervisor.openConsole(definition.id),
        await hypervisor.openConsole(definition.id),
      ];
      const booted = Promise.all([waitForText(first, READY), waitForText(second, READY)]);
      await hypervisor.resume(definition.id);
      await booted;
      await sendUntilEchoed(first, 'can you hear me', second);

      const ended = waitUntil(hypervisor, definition.id, hasEnded);
      await hypervisor.powerDown(definition.id);

      assert.deepEqual((await ended).current, { state: 'ended', how: 'shutdown' });
      assert.equal(await isRunning((await scene.record(definition.id)).started.qemu), false);
      const log = await hypervisor.readConsoleLog(definition.id);
      assert.ok(log.includes(READY) && log.includes('can you hear me'));
    });
  });

  it('survives kill -9 of its agent, and the next agent controls it', async () => {
    await withScene(async (scene) => {
      const definition = await echoGuest(scene);
      const agent = await agentOf(scene, definition);
      agent.kill('SIGKILL');
      await once(agent, 'exit');

      const { hypervisor } = scene;
      await hypervisor.adopt();

      assert.equal(stateOf(hypervisor, definition.id), 'running');
      const { started } = await scene.record(definition.id);
      assert.equal(hypervisor.get(definition.id)?.pid, started.qemu.pid);
      const console = await hypervisor.openConsole(definition.id);
      // The first agent received READY; a second READY would mean that the guest was booted again.
      assert.equal(await sendUntilEchoed(console, 'same guest'), 'same guest');
      assert.ok((await hypervisor.readConsoleLog(definition.id)).includes(READY));
      await hypervisor.destroy(definition.id);
    });
  });

  it('that shut down without an agent is reported by the next one', async () => {
    await withScene(async (scene) => {
      const definition = await echoGuest(scene);
      await scene.hypervisor.create(definition);
      await waitForText(await scene.hypervisor.openConsole(definition.id), READY);

      // The line stays open until the end: QEMU would drop data that the guest has not read.
      const lines: Duplex[] = [];
      try {
        const next = await scene.reopen(async () => {
          const line = scene.openSerialPort(definition.id);
          lines.push(line);
          // The echo shows that the guest reads; QEMU itself stays until it is asked to quit.
          await sendUntilEchoed(line, 'x');
          line.write(SHUT_DOWN);
        });
        await next.adopt();

        const { current } = await waitUntil(next, definition.id, hasEnded);
        assert.deepEqual(current, { state: 'ended', how: 'shutdown' });
        await next.remove(definition.id);
        assert.deepEqual(await readdir(join(scene.nodeDir, 'domains')), []);
      } finally {
        for (const line of lines) line.destroy();
      }
    });
  });
});

describe('qemu: copies of disks', { skip, timeout: 60_000 }, () => {
  it('have the same content and the same holes as the disks', async () => {
    await withScene(async (scene) => {
      const definition = await guestWithImages(scene);
      await scene.hypervisor.create(definition);
      const copies = await copiesOf(scene, definition);

      await scene.hypervisor.startCopies(definition.id, copies);

      for (const { copyId, path, source } of copies) {
        assert.deepEqual(await waitForCopy(scene.hypervisor, definition.id, copyId), { state: 'done' });
        qemuImg('check', '-f', 'qcow2', path);
        qemuImg('compare', '--force-share', '-f', source.format, '-F', 'qcow2', source.path, path);
        assert.deepEqual(virtualBytes(path), virtualBytes(source.path));
        assert.ok((await stat(path)).blocks * 512 < IMAGE_BYTES / 4);
      }
      assert.equal(stateOf(scene.hypervisor, definition.id), 'running');
    });
  });

  it('reach files in directories that guests cannot access', { skip: !isSandboxed && 'requires root' }, async () => {
    await withScene(async (scene) => {
      const definition = await scene.definitionWithDisks();
      await scene.hypervisor.create(definition);
      const copies = await copiesOf(scene, definition);
      await chmod(join(scene.nodeDir, 'snapshots'), 0o700);
      const run = join(scene.nodeDir, 'domains', definition.id, 'run');
      const before = await readdir(run);

      await scene.hypervisor.startCopies(definition.id, copies);

      for (const { copyId, path, source } of copies) {
        assert.deepEqual(await waitForCopy(scene.hypervisor, definition.id, copyId), { state: 'done' });
        qemuImg('compare', '--force-share', '-f', source.format, '-F', 'qcow2', source.path, path);
      }
      assert.deepEqual(await readdir(run), before);
    });
  });

  it('have the content of the time at which they began, despite later writes', async () => {
    await withScene(async (scene) => {
      const definition = await scene.definitionWithDisks();
      await scene.hypervisor.create(definition);
      const copies = await copiesOf(scene, definition);
      const before = await Promise.all(copies.map(({ source }) => readFile(source.path)));
      const slow = await scene.reopenSlow();
      await slow.adopt();
      await slow.startCopies(definition.id, copies);

      // Writes of a guest take the same path. QEMU accepts one QMP connection, so no other may be open.
      const next = await scene.reopen(async () => {
        const line = connect(join(scene.nodeDir, 'domains', definition.id, 'run', 'qmp.sock'));
        const qmp = await QmpClient.open(line, { clock: systemClock });
        for (const { deviceId } of copies) {
          const command = `qemu-io -d /machine/peripheral/${deviceId}/virtio-backend "write -P 1 ${WRITTEN_AT} 1M"`;
          await qmp.execute('human-monitor-command', { 'command-line': command });
        }
        for (const { copyId } of copies) {
          await qmp.execute('block-job-set-speed', { device: copyName(copyId), speed: 0 });
        }
        qmp.close();
      });
      await next.adopt();

      for (const [i, { copyId, path, source }] of copies.entries()) {
        assert.deepEqual(await waitForCopy(next, definition.id, copyId), { state: 'done' });
        assert.equal((await readFile(source.path))[WRITTEN_AT], 1);
        qemuImg('convert', '-f', 'qcow2', '-O', 'raw', path, `${path}.raw`);
        assert.ok((await readFile(`${path}.raw`)).equals(before[i]!));
      }
    });
  });
});

interface LinkDetails {
  readonly ifname?: string;
  readonly master?: string;
  readonly linkinfo?: { readonly info_data?: { readonly user?: string | number } };
}

/** Reads a device of the network namespace of the tests. */
function readLink(name: string): LinkDetails | undefined {
  const links = JSON.parse(execFileSync('ip', ['-details', '-json', 'link', 'show'], { encoding: 'utf8' }));
  return (links as LinkDetails[]).find(({ ifname }) => ifname === name);
}

describe('qemu: bridges', { skip, timeout: 60_000 }, () => {
  const noBridge = bridgeSkipReason();

  it('adds an interface to a bridge and removes it again', { skip: noBridge }, async () => {
    const tap = { name: tapName('a-uid', 'nic-lan'), bridge: BRIDGE };
    const user = guestUserOf('a-uid');
    ip('link', 'add', BRIDGE, 'type', 'bridge');
    try {
      await addTap(tap, user);
      const { master, linkinfo } = readLink(tap.name) ?? {};
      assert.deepEqual([master, String(linkinfo?.info_data?.user)], [BRIDGE, String(user.uid)]);
      // The state after a start that was interrupted.
      await addTap(tap, user);
      await removeTap(tap.name);
      await removeTap(tap.name);
      assert.equal(readLink(tap.name), undefined);
    } finally {
      ip('link', 'delete', BRIDGE);
    }
  });

  it('plugs an interface on a bridge into a guest that had none', { skip: noBridge }, async () => {
    ip('link', 'add', BRIDGE, 'type', 'bridge');
    try {
      await withScene(async ({ hypervisor, definition }) => {
        const plain = definition();
        const nic = plain.devices.find((device) => device.type === 'interface');
        assert.ok(nic?.type === 'interface' && nic.backend.type === 'user');
        const guest = definition({ ...plain, devices: plain.devices.filter((device) => device !== nic) });
        await hypervisor.create(guest, { paused: true });
        await hypervisor.plug(guest.id, { ...nic, backend: { type: 'bridge', bridge: BRIDGE } });
        const tap = tapName(guest.id, nic.id);
        assert.equal(readLink(tap)?.master, BRIDGE);
        await hypervisor.destroy(guest.id);
        assert.equal(readLink(tap), undefined);
      });
    } finally {
      ip('link', 'delete', BRIDGE);
    }
  });

  it('reports a missing bridge, and starts nothing', async () => {
    await withScene(async (scene) => {
      const plain = scene.definition();
      const devices = plain.devices.map((device) =>
        device.type === 'interface' ? { ...device, backend: { type: 'bridge', bridge: 'no-bridge' } as const } : device,
      );
      await assert.rejects(scene.hypervisor.create({ ...plain, devices }), /this node has no bridge "no-bridge"/);
      assert.deepEqual(await readdir(join(scene.nodeDir, 'domains')), []);
    });
  });
});

describe('qemu: processes and files', { skip, timeout: 60_000 }, () => {
  it('has every device at the address of the definition, with EFI, secure boot and a TPM', async () => {
    await withScene(async (scene) => {
      const [path, media] = [await imageFile(scene, 'data.img'), await imageFile(scene, 'media.img')];
      const plain = scene.definition();
      const definition: DomainDefinition = {
        ...plain,
        smm: true,
        firmware: { ...plain.firmware, loader: { type: 'efi', secureBoot: true } },
        devices: [...plain.devices, echoDisk(path), ...drives(media), { type: 'tpm', id: 'tpm0', model: 'crb' }],
      };
      await scene.hypervisor.create(definition, { paused: true });

      const learned = new Map(
        (await scene.hypervisor.learn(definition.id)).map((device) => [device.id, device.address]),
      );
      for (const { id, address } of definition.devices) assert.deepEqual(learned.get(id), address, id);

      const dir = join(scene.nodeDir, 'domains', definition.id);
      assert.equal((await findProcessesBelow(dir)).length, 2);
      await scene.hypervisor.destroy(definition.id);
      assert.deepEqual(await findProcessesBelow(dir), []);
    });
  });

  it('runs guests as an unprivileged user', { skip: !isSandboxed && 'requires root' }, async () => {
    await withScene(async (scene) => {
      const definition = await echoGuest(scene);
      await scene.hypervisor.create(definition);
      const status = await readFile(`/proc/${scene.hypervisor.get(definition.id)?.pid}/status`, 'utf8');
      const { uid } = guestUserOf(definition.id);
      assert.match(status, new RegExp(`^Uid:\\t${uid}\\t${uid}\\t${uid}\\t${uid}$`, 'm'));
      assert.match(status, /^CapBnd:\t0+$/m);
      assert.match(status, /^NoNewPrivs:\t1$/m);
      const dir = await stat(join(scene.nodeDir, 'domains', definition.id));
      assert.deepEqual([dir.uid, dir.mode & 0o777], [0, 0o711]);
    });
  });

  it('grows the disk of a running guest, and never shrinks one', async () => {
    await withScene(async (scene) => {
      const definition = await echoGuest(scene);
      const path = join(scene.nodeDir, 'volumes', 'echo.img');
      await scene.hypervisor.create(definition);

      await scene.hypervisor.resizeDisk(definition.id, 'disk-echo', 2 ** 21);
      assert.equal((await stat(path)).size, 2 ** 21);
      await scene.hypervisor.resizeDisk(definition.id, 'disk-echo', 2 ** 20);
      assert.equal((await stat(path)).size, 2 ** 21);
      await assert.rejects(scene.hypervisor.resizeDisk(definition.id, 'disk-tray', 2 ** 21), /no disk "disk-tray"/);
    });
  });

  it('reports the error of QEMU when a guest cannot start, and leaves nothing but its volumes', async () => {
    await withScene(async (scene) => {
      const plain = scene.definition();
      const missing = join(scene.nodeDir, 'missing.img');
      const definition: DomainDefinition = {
        ...plain,
        devices: [...plain.devices, echoDisk(missing), { type: 'tpm', id: 'tpm0', model: 'crb' }],
      };
      const volume = join(scene.nodeDir, 'domains', definition.id, 'volumes', 'empty.img');
      await mkdir(join(volume, '..'), { recursive: true });
      await writeFile(volume, '');

      await assert.rejects(scene.hypervisor.create(definition), /missing\.img/);

      assert.deepEqual(scene.hypervisor.list(), []);
      assert.deepEqual(await readdir(join(scene.nodeDir, 'domains', definition.id)), ['volumes']);
    });
  });

  it('removes a start that was interrupted before the pid was recorded', async () => {
    await withScene(async (scene) => {
      const definition = scene.definition({});
      const { id } = definition;
      await scene.hypervisor.create({
        ...definition,
        devices: [...definition.devices, { type: 'tpm', id: 'tpm0', model: 'crb' }],
      });
      const { started, ...record } = await scene.record(id);

      const next = await scene.reopen(() =>
        writeFile(join(scene.nodeDir, 'domains', id, 'domain.json'), JSON.stringify(record)),
      );
      await next.adopt();

      assert.deepEqual(next.list(), []);
      assert.equal(await isRunning(started.qemu), false);
      assert.deepEqual(await findProcessesBelow(join(scene.nodeDir, 'domains', id)), []);
      await assert.rejects(access(join(scene.nodeDir, 'domains', id)));
    });
  });

  it('removes a start that was interrupted before the guest ran', async () => {
    await withScene(async (scene) => {
      const { id } = await createPaused(scene);
      const { started, ...record } = await scene.record(id);

      const next = await scene.reopen(() =>
        writeFile(
          join(scene.nodeDir, 'domains', id, 'domain.json'),
          JSON.stringify({ ...record, started, paused: false }),
        ),
      );
      await next.adopt();

      assert.deepEqual(next.list(), []);
      assert.equal(await isRunning(started.qemu), false);
    });
  });

  it('leaves a guest alone whose record cannot be read', async () => {
    await withScene(async (scene) => {
      const { id } = await createPaused(scene);
      const path = join(scene.nodeDir, 'domains', id, 'domain.json');
      const text = await readFile(path, 'utf8');
      const { started } = await scene.record(id);

      const next = await scene.reopen(() => writeFile(path, '{'));
      await next.adopt();

      assert.deepEqual(next.list(), []);
      assert.equal(await isRunning(started.qemu), true);
      await writeFile(path, text);
    });
  });

  it('removes a domain without a readable record and without a process', async () => {
    await withScene(async (scene) => {
      const { id } = await createPaused(scene);

      const next = await scene.reopen(async () => {
        await scene.killGuest(id);
        await writeFile(join(scene.nodeDir, 'domains', id, 'domain.json'), '');
      });
      await next.adopt();

      assert.deepEqual(await readdir(join(scene.nodeDir, 'domains')), []);
    });
  });

  it('ends a guest whose directory was removed, because no other component can', async () => {
    await withScene(async (scene) => {
      const { id } = await createPaused(scene);
      const { started } = await scene.record(id);

      const next = await scene.reopen(() => rm(join(scene.nodeDir, 'domains', id), { recursive: true }));
      await next.adopt();

      assert.deepEqual(next.list(), []);
      assert.equal(await isRunning(started.qemu), false);
    });
  });
});

function ip(...args: string[]): void {
  execFileSync('ip', args, { stdio: 'pipe' });
}

function bridgeSkipReason(): string | false {
  if (!isSandboxed) return 'only root can make bridges';
  try {
    ip('link', 'add', BRIDGE, 'type', 'bridge');
    ip('link', 'delete', BRIDGE);
    accessSync('/dev/net/tun');
    return false;
  } catch (error) {
    return `bridges or tap devices cannot be made here: ${(error as Error).message}`;
  }
}

async function withScene(run: (scene: QemuScene) => Promise<void>): Promise<void> {
  const scene = await qemuScene();
  try {
    await run(scene);
  } finally {
    await scene.end();
  }
}

async function createPaused(scene: QemuScene): Promise<DomainDefinition> {
  const definition = scene.definition({});
  await scene.hypervisor.create(definition, { paused: true });
  return definition;
}

/** Makes a guest with a disk in a directory of volumes, owned by the user of the guests. */
/**
 * Sends the text until the guest echoes it, and returns what the guest sent up to then. On a busy machine QEMU sometimes
 * drops input that arrives just after a connection to the serial port was made.
 */
async function sendUntilEchoed(to: Duplex, text: string, from = to): Promise<string> {
  const received = waitForText(from, text);
  to.write(text);
  const sending = setInterval(() => to.write(text), RESEND_MS);
  return await received.finally(() => clearInterval(sending));
}

async function echoGuest(scene: QemuScene): Promise<DomainDefinition> {
  const path = await imageFile(scene, 'echo.img');
  await writeEchoDisk(path);
  const plain = scene.definition();
  return { ...plain, devices: [...plain.devices.filter(({ type }) => type !== 'interface'), echoDisk(path)] };
}

async function imageFile(scene: QemuScene, name: string): Promise<string> {
  const dir = join(scene.nodeDir, 'volumes');
  await mkdir(dir, { recursive: true, mode: 0o711 });
  const path = join(dir, name);
  await writeFile(path, Buffer.alloc(2 ** 20));
  return path;
}

/** Makes a guest with a raw disk with holes, an overlay with its own data, and a read-only medium. */
async function guestWithImages(scene: QemuScene): Promise<DomainDefinition> {
  const [raw, base, media] = await Promise.all(
    ['raw.img', 'base.img', 'media.img'].map((name) => imageFile(scene, name)),
  );
  for (const path of [raw!, base!, media!]) {
    await truncate(path, 0);
    await truncate(path, IMAGE_BYTES);
    execFileSync('qemu-io', ['-f', 'raw', '-c', 'write -P 5 0 1M', '-c', 'write -P 6 20M 192k', path]);
  }
  const layer = await imageFile(scene, 'layer.qcow2');
  qemuImg('create', '-f', 'qcow2', '-F', 'raw', '-b', 'base.img', layer);
  execFileSync('qemu-io', ['-f', 'qcow2', '-c', 'write -P 7 10M 1M', '-c', 'write -z 20M 64k', layer]);
  const plain = scene.definition();
  const disks = [
    aDisk('raw', 2, { path: raw!, format: 'raw' }),
    aDisk('layer', 3, { path: layer, format: 'qcow2', base: base! }),
    { ...aDisk('media', 4, { path: media!, format: 'raw' }), readonly: true },
  ];
  return { ...plain, devices: [...plain.devices, ...disks] };
}

/** Returns a copy request for each disk with a medium, with the medium. */
async function copiesOf(scene: QemuScene, { devices }: DomainDefinition) {
  const disks = devices.flatMap((device) =>
    device.type === 'disk' && device.source !== undefined ? [{ deviceId: device.id, source: device.source }] : [],
  );
  return Promise.all(disks.map(async (disk) => ({ ...disk, copyId: newUid(), path: await scene.copyFile() })));
}

function qemuImg(...args: string[]): string {
  return execFileSync('qemu-img', args, { encoding: 'utf8', stdio: 'pipe' });
}

function virtualBytes(path: string): unknown {
  return (JSON.parse(qemuImg('info', '--force-share', '--output', 'json', path)) as Record<string, unknown>)[
    'virtual-size'
  ];
}

/** Read-only drives, so that they can share the image. */
function drives(path: string): Device[] {
  const drive = (bus: 'sata' | 'scsi', media: 'disk' | 'cdrom', unit: string): Device => ({
    type: 'disk',
    id: `disk-${bus}${unit}`,
    name: `${bus}${unit}`,
    media,
    bus,
    source: { path, format: 'raw' },
    readonly: true,
    cache: 'writeback',
    address: { type: 'drive', controller: '0', bus: '0', target: '0', unit },
  });
  return [drive('sata', 'cdrom', '5'), drive('scsi', 'cdrom', '0'), drive('scsi', 'disk', '9')];
}

/** Starts a process that starts the guest; resolves when the guest has booted. */
async function agentOf(scene: QemuScene, definition: DomainDefinition) {
  const script = `
    import { openQemu } from '#node/hypervisor/qemu/testing/qemu-scene.ts';
    const definition = ${JSON.stringify(definition)};
    const hypervisor = openQemu(${JSON.stringify(scene.nodeDir)});
    setInterval(() => undefined, 60_000);
    await hypervisor.create(definition, { paused: true });
    const console = await hypervisor.openConsole(definition.id);
    console.on('data', (bytes) => process.stdout.write(bytes));
    await hypervisor.resume(definition.id);
  `;
  const agent = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', '--input-type=module-typescript', '-e', script],
    {
      cwd: join(import.meta.dirname, '../..'),
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  await waitForText(agent.stdout, READY);
  return agent;
}

/** Returns everything up to and including the text. */
function waitForText(stream: Readable, text: string): Promise<string> {
  let all = '';
  return new Promise((resolve, reject) => {
    const listen = (bytes: Buffer) => {
      all += bytes.toString('latin1');
      if (!all.includes(text)) return;
      stream.off('data', listen);
      resolve(all);
    };
    stream.on('data', listen);
    stream.once('end', () => reject(new Error(`it ended after ${JSON.stringify(all)}`)));
  });
}
