/**
 * Compatibility with KubeVirt's own client, byte by byte where it matters: its handshake, and bodies without a content
 * type.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, suite, test } from 'node:test';
import { connect, type TLSSocket } from 'node:tls';
import { encodeFrame, OPCODES, ServerFrames, type RawFrame } from '#lib/testing/websocket-frames.ts';
import { startSubresourcesScene, type SubresourcesScene } from '#test/scenarios/subresources-scene.ts';
import { sendHttp1Request } from '#test/support/raw-https.ts';

const IN_NAMESPACE = '/apis/subresources.kubevirt.io/v1/namespaces/default';
/** The Sec-WebSocket-Key in the example of RFC 6455. */
const KEY = 'dGhlIHNhbXBsZSBub25jZQ==';
const ACCEPT = 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=';

let scene: SubresourcesScene;
const cleanups: (() => unknown)[] = [];
before(async () => {
  scene = await startSubresourcesScene({ after: (fn) => cleanups.push(fn) });
});
after(async () => {
  await scene?.stop();
  for (const cleanup of cleanups) await cleanup();
});

async function createGuest(): Promise<string> {
  const name = scene.newName();
  await scene.createVm(name, { runStrategy: 'Manual' }, { created: true });
  await scene.createVmi(name, { phase: 'Running' });
  scene.node.run(name);
  return name;
}

/** One connection as gorilla/websocket opens it, without additional headers. */
class GoClient {
  readonly #socket: TLSSocket;
  readonly #reader = new ServerFrames();
  readonly #frames: RawFrame[] = [];
  #bytes = Buffer.alloc(0);
  #upgraded = false;

  constructor(socket: TLSSocket) {
    this.#socket = socket;
    socket.on('error', () => {});
    socket.on('data', (chunk: Buffer) => {
      if (this.#upgraded) this.#frames.push(...this.#reader.push(chunk));
      else this.#bytes = Buffer.concat([this.#bytes, chunk]);
      socket.emit('taken');
    });
  }

  static async open(path: string): Promise<GoClient> {
    const { server, certificateAuthority: ca, clientCertificate: cert, clientKey: key } = scene.front.admin;
    const { hostname, port, host } = new URL(server);
    // Go's TLS offers no protocol here, and gorilla supports HTTP/1.1 only.
    const socket = connect({ host: hostname, port: Number(port), ca, cert, key });
    await once(socket, 'secureConnect');
    const client = new GoClient(socket);
    const lines = [
      `GET ${path} HTTP/1.1`,
      `Host: ${host}`,
      'User-Agent: virtctl/v0.0.0 (linux/amd64) kubernetes/$Format',
      'Connection: Upgrade',
      `Sec-WebSocket-Key: ${KEY}`,
      'Sec-WebSocket-Protocol: plain.kubevirt.io',
      'Sec-WebSocket-Version: 13',
      'Upgrade: websocket',
    ];
    socket.write(`${lines.join('\r\n')}\r\n\r\n`);
    return client;
  }

  /** Reads the status line and headers; after an upgrade, frames follow. */
  async head(): Promise<string> {
    while (!this.#bytes.includes('\r\n\r\n')) await once(this.#socket, 'taken');
    const end = this.#bytes.indexOf('\r\n\r\n');
    const head = this.#bytes.toString('latin1', 0, end);
    if (head.startsWith('HTTP/1.1 101')) {
      this.#upgraded = true;
      const rest = this.#bytes.subarray(end + 4);
      if (rest.length > 0) this.#frames.push(...this.#reader.push(rest));
    }
    return head;
  }

  async body(): Promise<string> {
    if (!this.#socket.readableEnded) await once(this.#socket, 'end');
    return this.#bytes.toString('utf8', this.#bytes.indexOf('\r\n\r\n') + 4);
  }

  async frame(): Promise<RawFrame> {
    for (;;) {
      const frame = this.#frames.shift();
      if (frame !== undefined) return frame;
      await once(this.#socket, 'taken');
    }
  }

  send(opcode: number, text: string): void {
    this.#socket.write(encodeFrame({ opcode, payload: Buffer.from(text) }));
  }

  /** Ends like wsStreamer: without a close frame. */
  drop(): void {
    this.#socket.destroy();
  }
}

suite('a stream of KubeVirt', () => {
  const streams: Record<string, { path: string; greeting?: string }> = {
    console: { path: 'virtualmachineinstances/NAME/console', greeting: 'login: ' },
    vnc: { path: 'virtualmachineinstances/NAME/vnc?preserveSession=false', greeting: 'RFB 003.008\n' },
    'a port of an instance': { path: 'virtualmachineinstances/NAME/portforward/22/tcp' },
    'a port of a VM': { path: 'virtualmachines/NAME/portforward/22/tcp' },
  };
  for (const [what, { path, greeting }] of Object.entries(streams)) {
    test(`${what}: the handshake, both directions, a ping, and an end without a close frame`, async () => {
      const name = await createGuest();
      const client = await GoClient.open(`${IN_NAMESPACE}/${path.replace('NAME', name)}`);
      const head = await client.head();
      assert.match(head, /^HTTP\/1\.1 101 Switching Protocols\r\n/);
      assert.match(head, new RegExp(`\r\nSec-WebSocket-Accept: ${ACCEPT.replace('+', '\\+')}(?:\r\n|$)`));
      assert.match(head, /\r\nSec-WebSocket-Protocol: plain\.kubevirt\.io(?:\r\n|$)/);
      assert.match(head, /\r\nUpgrade: websocket(?:\r\n|$)/);
      if (greeting !== undefined) assert.equal((await client.frame()).payload.toString(), greeting);
      client.send(OPCODES.binary, 'hello');
      const answer = await client.frame();
      assert.deepEqual([answer.opcode, answer.payload.toString()], [OPCODES.binary, 'HELLO']);
      client.send(OPCODES.ping, 'keep alive');
      const pong = await client.frame();
      assert.deepEqual([pong.opcode, pong.payload.toString()], [OPCODES.pong, 'keep alive']);
      const { consoles, displays, ports } = scene.node;
      const guest = (what === 'console' ? consoles : what === 'vnc' ? displays : ports).get(name)!;
      client.drop();
      if (!guest.destroyed) await once(guest, 'close');
    });
  }

  test('a refusal is a Status that the client can read', async () => {
    const name = scene.newName();
    await scene.createVmi(name, { phase: 'Scheduling' });
    const client = await GoClient.open(`${IN_NAMESPACE}/virtualmachineinstances/${name}/console`);
    const head = await client.head();
    assert.match(head, /^HTTP\/1\.1 400 /);
    assert.match(head, /\r\ncontent-type: application\/json/i);
    const status = JSON.parse(await client.body());
    const { kind, code, reason, message } = status;
    assert.deepEqual(
      { kind, code, reason, message },
      {
        ...{ kind: 'Status', code: 400, reason: 'BadRequest', message: 'VMI is not running' },
      },
    );
  });
});

suite('a verb of KubeVirt', () => {
  const GO = { accept: 'application/json, */*', 'user-agent': 'virtctl/v0.0.0 (linux/amd64) kubernetes/$Format' };
  const verbs: Record<string, { path: string; body?: string; want: number }> = {
    // json.Marshal of options that are nil, or empty.
    'start without options': { path: 'virtualmachines/NAME/start', body: '{}', want: 409 },
    'stop with null': { path: 'virtualmachines/NAME/stop?dryRun=All', body: 'null', want: 202 },
    'restart with options': { path: 'virtualmachines/NAME/restart', body: '{"dryRun":["All"]}', want: 202 },
    'pause with options': { path: 'virtualmachineinstances/NAME/pause', body: '{"dryRun":["All"]}', want: 200 },
    'softreboot without a body': { path: 'virtualmachineinstances/NAME/softreboot', want: 200 },
    'migrate with a selector': {
      path: 'virtualmachines/NAME/migrate',
      body: '{"dryRun":["All"],"addedNodeSelector":{"a":"b"}}',
      want: 202,
    },
  };
  for (const [what, { path, body, want }] of Object.entries(verbs)) {
    test(what, async () => {
      const name = await createGuest();
      const answer = await sendHttp1Request(scene.front.admin, {
        method: 'PUT',
        path: `${IN_NAMESPACE}/${path.replace('NAME', name)}`,
        headers: GO,
        ...(body === undefined ? {} : { body }),
      });
      assert.equal(answer.status, want, answer.text);
    });
  }

  test('returns the version that the client compares with its own', async () => {
    const { status, text } = await sendHttp1Request(scene.front.admin, {
      path: '/apis/subresources.kubevirt.io/v1/version',
      headers: GO,
    });
    assert.equal(status, 200);
    assert.match(JSON.parse(text).gitVersion, /^v\d+\.\d+\.\d+/);
  });
});
