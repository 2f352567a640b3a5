/** Access to a real guest: its display as a picture and over VNC, and its ports, before and after a migration. */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { inflateSync } from 'node:zlib';
import { GUEST_IMAGE } from '#api/names.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { openConnection, type ApiConnection } from '#cli/connection/api-connection.ts';
import { systemClock } from '#lib/clock.ts';
import type { WebSocketStream } from '#lib/websocket/websocket.ts';
import { startRealPlane, type RealGuest, type RealPlane } from '#test/support/real-guests.ts';

const INSTANCE = '/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachineinstances/shown';
const RESEND_MS = 2000;
const MAX_PICTURE_BYTES = 16 * 1024 * 1024;
const UUID = '0d3a5ce8-7b53-4b6c-9a5e-1c7f3b1e9f42';

const virtctl = join(import.meta.dirname, '../../virtctl');

const cleanUps: (() => unknown)[] = [];
let plane: RealPlane;
let guest: RealGuest;
let api: ApiConnection;

before(async () => {
  plane = await startRealPlane({ after: (fn) => void cleanUps.unshift(fn) });
  const access = plane.server.access();
  api = openConnection({ access, userAgent: 'test', clock: systemClock, readFile: () => '' });
  cleanUps.unshift(() => api.close());
  const kernelArgs = 'console=ttyS0 quiet no_timer_check guest.cmd=serve';
  await plane.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'shown', namespace: 'default' },
    spec: {
      runStrategy: 'Always',
      template: {
        spec: {
          domain: {
            memory: { guest: '128Mi' },
            firmware: { uuid: UUID, kernelBoot: { kernelArgs, container: { image: GUEST_IMAGE } } },
            devices: { interfaces: [{ name: 'default', masquerade: {} }] },
          },
          networks: [{ name: 'default', pod: {} }],
        },
      },
    },
  });
  guest = plane.guest('shown');
  await guest.awaitBoot();
});
after(async () => {
  for (const cleanUp of cleanUps) await cleanUp();
});

const open = (verb: string) => api.openWebSocket(`${INSTANCE}/${verb}`, ['plain.kubevirt.io']);

/** Reads this many bytes, or everything until the end. */
async function read(stream: WebSocketStream, bytes = Number.POSITIVE_INFINITY): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  while (length < bytes) {
    const chunk = (stream.read() as Buffer | null) ?? undefined;
    if (chunk !== undefined) {
      chunks.push(chunk);
      length += chunk.length;
    } else if (stream.readableEnded || stream.destroyed) break;
    else await new Promise((resolve) => stream.once('readable', resolve).once('close', resolve));
  }
  return Buffer.concat(chunks);
}

suite('a real guest', () => {
  test('has a screenshot with the text of its firmware', async () => {
    const { width, height, pixels } = decodePng(await api.getBytes(`${INSTANCE}/vnc/screenshot`, MAX_PICTURE_BYTES));
    assert.ok(width >= 640 && height >= 350, `${width} x ${height}`);
    // The first byte of each row is its filter type.
    const lit = pixels.filter((byte) => byte > 64).length;
    assert.ok(lit > 500, `${lit} bright bytes, too few for text`);
  });

  test('can be reached over VNC', async () => {
    const display = await open('vnc?preserveSession=false');
    assert.equal((await read(display, 12)).toString(), 'RFB 003.008\n');
    display.write('RFB 003.008\n');
    const [count, first] = await read(display, 2);
    assert.deepEqual(
      { count, first },
      { count: 1, first: 1 },
      'one security type, "none": the API has authorised the client',
    );
    display.write(Buffer.from([1]));
    assert.deepEqual([...(await read(display, 4))], [0, 0, 0, 0]);
    display.write(Buffer.from([1]));
    const init = await read(display, 24);
    assert.ok(init.readUInt16BE(0) >= 640);
    assert.match(init.toString('latin1', 24), /default\/shown/);
    display.destroy();
  });

  test('is shown by TigerVNC and gvnccapture at the same time, although both ask for exclusive access', async (t) => {
    const screen = await startScreen(t);
    const viewer = startVirtctl(t, ['vnc', 'shown', '--vnc-type', 'tiger'], { DISPLAY: screen });
    await viewer.awaitText(/Using pixel format/);
    const proxy = startVirtctl(t, ['vnc', 'shown', '--proxy-only']);
    const [, port] = await proxy.awaitText(/\{"port":(\d+)\}/);
    const folder = await mkdtemp(join(tmpdir(), 'selfsame-vnc-'));
    t.after(() => rm(folder, { recursive: true }));
    const file = join(folder, 'capture.png');
    // A display number that is larger than any usual one stands for a port.
    await promisify(execFile)('gvnccapture', ['-q', `127.0.0.1:${Number(port) - 5900}`, file]);
    const picture = await readFile(file);
    const shown = await api.getBytes(`${INSTANCE}/vnc/screenshot`, MAX_PICTURE_BYTES);
    assert.deepEqual(picture.subarray(16, 24), shown.subarray(16, 24), 'both pictures have the same size');
    assert.equal(viewer.exitCode(), null, 'the first viewer is still connected');
  });

  test('can be reached on its ports, through its VMI and its VM', async () => {
    const page = await open('portforward/8080/tcp');
    page.write('GET /healthz HTTP/1.0\r\n\r\n');
    assert.match((await read(page)).toString(), /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\nok$/);
    const path = INSTANCE.replace('virtualmachineinstances', 'virtualmachines');
    const echo = await api.openWebSocket(`${path}/portforward/7777`, ['plain.kubevirt.io']);
    const greeting = `GUEST ${UUID}\n`;
    assert.equal((await read(echo, greeting.length)).toString(), greeting);
    echo.write('hello\n');
    assert.equal((await read(echo, 6)).toString(), 'hello\n');
    echo.destroy();
  });

  test('keeps the boundaries of datagrams', async () => {
    const stream = await open('portforward/7778/udp');
    const received: string[] = [];
    stream.on('data', (datagram: Buffer) => received.push(datagram.toString('latin1')));
    const sent = ['first', 'x'.repeat(1400), 'third'];
    for (const datagram of sent) {
      // A busy machine may lose datagrams, so each is sent until its echo arrives.
      const sending = setInterval(() => stream.write(datagram), RESEND_MS);
      stream.write(datagram);
      while (!received.includes(datagram)) await once(stream, 'data');
      clearInterval(sending);
    }
    stream.destroy();
    assert.deepEqual([...new Set(received)], sent);
  });

  test('refuses a connection to a port without a listener', async () => {
    await assert.rejects(open('portforward/9/tcp'), /the guest refused the connection to port 9/);
  });

  test('loses its connections at a migration, and can be reached on the new node', async () => {
    const echo = await open('portforward/7777/tcp');
    await read(echo, 6);
    const from = (await guest.vmi()).status?.nodeName;
    await plane.put('virtualmachines/shown/migrate');
    echo.on('error', () => {});
    await read(echo);
    await guest.awaitVmi('the guest is on another node', (vmi) => {
      const { nodeName, migrationState } = vmi?.status ?? {};
      return nodeName !== from && migrationState?.completed === true;
    });
    const page = await open('portforward/8080/tcp');
    page.write('GET /healthz HTTP/1.0\r\n\r\n');
    assert.match((await read(page)).toString(), /ok$/);
  });
});

/** Starts an X server without a monitor, and returns its DISPLAY. */
async function startScreen(t: TestContext): Promise<string> {
  const server = spawn('Xvfb', ['-displayfd', '1', '-screen', '0', '1280x1024x24', '-nolisten', 'tcp'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  t.after(() => server.kill());
  const [display] = (await once(server.stdout, 'data')) as [Buffer];
  return `:${display.toString().trim()}`;
}

/** Starts virtctl. The test ends it together with its viewer, which is in the same process group. */
function startVirtctl(t: TestContext, args: string[], env: Record<string, string> = {}) {
  const child = spawn(virtctl, ['--kubeconfig', join(plane.dataDir, 'kubeconfig'), ...args], {
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  });
  t.after(() => child.exitCode ?? process.kill(-child.pid!, 'SIGKILL'));
  let text = '';
  const changes = new EventEmitter();
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      changes.emit('change');
    });
  }
  child.once('exit', () => changes.emit('change'));
  return {
    exitCode: () => child.exitCode,
    async awaitText(pattern: RegExp): Promise<RegExpExecArray> {
      for (;;) {
        const match = pattern.exec(text);
        if (match !== null) return match;
        assert.equal(child.exitCode, null, text);
        await once(changes, 'change');
      }
    },
  };
}

/** Decodes a PNG as QEMU writes it (8 bits, RGB); returns the rows with their filter bytes, still filtered. */
function decodePng(picture: Buffer): { width: number; height: number; pixels: Buffer } {
  assert.equal(picture.toString('latin1', 1, 4), 'PNG');
  const data: Buffer[] = [];
  for (let at = 8; at < picture.length;) {
    const length = picture.readUInt32BE(at);
    if (picture.toString('latin1', at + 4, at + 8) === 'IDAT') data.push(picture.subarray(at + 8, at + 8 + length));
    at += length + 12;
  }
  const [width, height] = [picture.readUInt32BE(16), picture.readUInt32BE(20)];
  const pixels = inflateSync(Buffer.concat(data));
  assert.equal(pixels.length, height * (1 + width * 3));
  return { width, height, pixels };
}
