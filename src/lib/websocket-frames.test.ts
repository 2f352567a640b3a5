import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeClose, encodeFrame, FrameReader, OPCODES, parseClose, type Frame } from '#lib/websocket-frames.ts';

const MASK = Buffer.from([0x37, 0xfa, 0x21, 0x3d]);
const MAX = 70_000;

const binary = (payload: Buffer, fin = true): Frame => ({ opcode: OPCODES.binary, fin, payload });
const serverReader = () => new FrameReader({ masked: true, maxMessageBytes: MAX });
const clientReader = () => new FrameReader({ masked: false, maxMessageBytes: MAX });

test('encodes and reads the examples of RFC 6455 section 5.7', () => {
  const hello = Buffer.from('Hello');
  const text: Frame = { opcode: OPCODES.text, fin: true, payload: hello };
  assert.equal(encodeFrame(text).toString('hex'), '810548656c6c6f');
  assert.equal(encodeFrame(text, MASK).toString('hex'), '818537fa213d7f9f4d5158');
  assert.deepEqual(serverReader().push(Buffer.from('818537fa213d7f9f4d5158', 'hex')), [text]);
  assert.deepEqual(clientReader().push(Buffer.from('010348656c80026c6f', 'hex')), [
    { opcode: OPCODES.text, fin: false, payload: Buffer.from('Hel') },
    { opcode: OPCODES.continuation, fin: true, payload: Buffer.from('lo') },
  ]);
});

for (const size of [0, 1, 125, 126, 65_535, 65_536, MAX]) {
  test(`reads back a payload of ${size} bytes, masked or not, whole or byte by byte`, () => {
    const payload = Buffer.alloc(size, 'abc');
    for (const [reader, mask] of [[serverReader(), MASK] as const, [clientReader(), undefined] as const]) {
      assert.deepEqual(reader.push(encodeFrame(binary(payload), mask)), [binary(payload)]);
    }
    const reader = serverReader();
    const frames = [...encodeFrame(binary(payload), MASK)].flatMap((byte) => reader.push(Buffer.from([byte])));
    assert.deepEqual(frames, [binary(payload)]);
  });
}

test('separates frames that arrive in arbitrary pieces', () => {
  const payloads = ['first', 'the second one', ''].map((text) => Buffer.from(text));
  const bytes = Buffer.concat(payloads.map((payload) => encodeFrame(binary(payload))));
  for (let cut = 1; cut < bytes.length; cut++) {
    const reader = clientReader();
    const frames = [
      ...reader.push(bytes.subarray(0, cut)),
      ...[...bytes.subarray(cut)].flatMap((byte) => reader.push(Buffer.from([byte]))),
    ];
    assert.deepEqual(
      frames,
      payloads.map((payload) => binary(payload)),
    );
  }
});

// This would take minutes if each byte copied the buffer.
test('reads a long frame that arrives byte by byte', { timeout: 60_000 }, async ({ signal }) => {
  const payload = Buffer.alloc(1024 * 1024, 'abc');
  const reader = new FrameReader({ masked: true, maxMessageBytes: payload.length });
  const frames: Frame[] = [];
  for (const [index, byte] of encodeFrame(binary(payload), MASK).entries()) {
    frames.push(...reader.push(Buffer.from([byte])));
    if (index % 1000 !== 0) continue;
    await new Promise((resolve) => setImmediate(resolve));
    signal.throwIfAborted();
  }
  assert.ok(frames.length === 1 && frames[0]?.payload.equals(payload));
});

test('reads control frames between the fragments of a message', () => {
  const frames: Frame[] = [
    binary(Buffer.from('a'), false),
    { opcode: OPCODES.ping, fin: true, payload: Buffer.from('?') },
    { opcode: OPCODES.continuation, fin: false, payload: Buffer.from('b') },
    { opcode: OPCODES.continuation, fin: true, payload: Buffer.from('c') },
    binary(Buffer.from('d')),
  ];
  assert.deepEqual(clientReader().push(Buffer.concat(frames.map((frame) => encodeFrame(frame)))), frames);
});

const ping = (payload: Buffer, fin = true): Frame => ({ opcode: OPCODES.ping, fin, payload });
const refusals: Record<string, { bytes: Buffer; code: number; message: RegExp; masked?: boolean }> = {
  'an unmasked frame of a client': {
    bytes: encodeFrame(binary(Buffer.from('x'))),
    masked: true,
    code: 1002,
    message: /not masked/,
  },
  'a masked frame of a server': {
    bytes: encodeFrame(binary(Buffer.from('x')), MASK),
    code: 1002,
    message: /is masked/,
  },
  'a reserved bit': { bytes: Buffer.from([0xc2, 0]), code: 1002, message: /reserved/ },
  'an unknown opcode': { bytes: Buffer.from([0x83, 0]), code: 1002, message: /opcode 3/ },
  'a fragmented ping': { bytes: encodeFrame(ping(Buffer.alloc(0), false)), code: 1002, message: /fragmented/ },
  'a long ping': { bytes: encodeFrame(ping(Buffer.alloc(126))), code: 1002, message: /too long/ },
  'a continuation without a message': { bytes: Buffer.from([0x80, 0]), code: 1002, message: /no message to continue/ },
  'a message within another': { bytes: Buffer.from([0x02, 0, 0x82, 0]), code: 1002, message: /inside another/ },
  // Refused as soon as the header is there.
  'a frame that is too large': {
    bytes: encodeFrame(binary(Buffer.alloc(MAX + 1))).subarray(0, 10),
    code: 1009,
    message: /larger than 70000 bytes/,
  },
  'fragments that are too large together': {
    bytes: Buffer.concat([
      encodeFrame(binary(Buffer.alloc(MAX), false)),
      encodeFrame({ opcode: OPCODES.continuation, fin: true, payload: Buffer.alloc(1) }),
    ]),
    code: 1009,
    message: /larger than/,
  },
  'a length above 2^53': {
    bytes: Buffer.concat([Buffer.from([0x82, 127]), Buffer.alloc(8, 0xff)]),
    code: 1009,
    message: /larger than/,
  },
};
for (const [name, { bytes, masked = false, code, message }] of Object.entries(refusals)) {
  test(`refuses ${name}`, () => {
    const reader = new FrameReader({ masked, maxMessageBytes: MAX });
    assert.throws(() => reader.push(bytes), { name: 'WebSocketError', code, message });
  });
}

test('reads the code and reason of a close frame, and 1005 if it has none', () => {
  assert.deepEqual(parseClose(encodeClose(1011, 'gone')), { code: 1011, reason: 'gone' });
  assert.deepEqual(parseClose(Buffer.alloc(0)), { code: 1005, reason: '' });
  assert.equal(encodeClose(1000, 'x'.repeat(200)).length, 125);
});
