import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { decodeProtobuf } from '#engine/protobuf/decode-protobuf.ts';
import { MAX_FIELDS, MAX_MESSAGES, MAX_MESSAGE_NESTING } from '#engine/protobuf/wire-reader.ts';
import { body, bytes, double, entry, int, message, tag, text, varint } from '#engine/protobuf/testing/wire-writer.ts';

const account = (...fields: Buffer[]) => body('v1', 'ServiceAccount', ...fields);
const rawBody = (...fields: Buffer[]) => Buffer.concat([Buffer.from('k8s\0'), ...fields]);
const revision = (data: Buffer) => body('apps/v1', 'ControllerRevision', message(2, bytes(1, data)));
const definition = (...schema: Buffer[]) =>
  body(
    'apiextensions.k8s.io/v1',
    'CustomResourceDefinition',
    message(2, message(7, message(4, message(1, ...schema)))),
  );

/** Builds a schema that is nested in `not`, `levels` deep. */
function nestedSchema(levels: number): Buffer {
  let inner = text(5, 'x');
  for (let i = 1; i < levels; i++) inner = message(28, inner);
  return inner;
}

const faults: Record<string, { readonly bytes: () => Buffer; readonly want: RegExp }> = {
  'empty data': { bytes: () => Buffer.alloc(0), want: /^empty data$/ },
  'another magic': {
    bytes: () => Buffer.from('{"kind":"Pod"}'),
    want: /^provided data does not appear to be a protobuf message, expected prefix \[107 56 115 0\]$/,
  },
  'the magic only': { bytes: () => rawBody(), want: /^empty body$/ },
  'no kind': { bytes: () => rawBody(message(1, text(1, 'v1')), message(2)), want: /^Object 'Kind' is missing/ },
  'no apiVersion': {
    bytes: () => rawBody(message(1, text(2, 'Pod')), message(2)),
    want: /^Object 'apiVersion' is missing/,
  },
  'no message': { bytes: () => rawBody(message(1, text(1, 'v1'), text(2, 'Pod'))), want: /^unexpected EOF$/ },
  'an unknown kind': {
    bytes: () => body('v2', 'Gadget'),
    want: /^no kind "Gadget" is registered for version "v2"$/,
  },
  'a very long kind': { bytes: () => body('v1', 'x'.repeat(10_000)), want: /^no kind "x{253}\.\.\." is registered/ },
  'a kind of another group': { bytes: () => body('v1', 'Job'), want: /^no kind "Job" is registered for version "v1"$/ },
  'a prototype as kind': { bytes: () => body('__proto__', 'toString'), want: /^no kind "toString"/ },
  'a length beyond the end': { bytes: () => account(Buffer.from([10, 5, 1])), want: /^unexpected EOF$/ },
  'a length beyond the nested end': {
    bytes: () => account(message(1, Buffer.from([10, 5])), text(9, 'abcdefgh')),
    want: /^unexpected EOF$/,
  },
  'a huge length': {
    bytes: () => account(tag(1, 2), varint(2n ** 63n - 1n)),
    want: /^unexpected EOF$/,
  },
  'a negative length': { bytes: () => account(tag(1, 2), varint(-1)), want: /^proto: negative length found/ },
  'a truncated varint': { bytes: () => account(message(1, tag(7, 0), Buffer.from([128]))), want: /^unexpected EOF$/ },
  'an unterminated varint': {
    bytes: () => account(message(1, tag(7, 0), Buffer.alloc(11, 128))),
    want: /^proto: integer overflow$/,
  },
  'a truncated number': { bytes: () => account(tag(99, 1), Buffer.alloc(7)), want: /^unexpected EOF$/ },
  'field 0': { bytes: () => account(Buffer.from([2, 0])), want: /^proto: illegal tag 0 \(wire type 2\)$/ },
  'an unknown wire type': { bytes: () => account(tag(99, 6)), want: /^proto: illegal wireType 6$/ },
  'a group that was never opened': {
    bytes: () => account(tag(1, 4)),
    want: /^proto: ServiceAccount: wiretype end group for non-group$/,
  },
  'a group that is never closed': { bytes: () => account(tag(99, 3)), want: /^unexpected EOF$/ },
  'a group closed in a map entry': {
    bytes: () => account(message(1, message(11, tag(9, 4)))),
    want: /^proto: unexpected end of group$/,
  },
  'a message instead of a string': {
    bytes: () => account(message(1, int(1, 1))),
    want: /^proto: wrong wireType = 0 for field name$/,
  },
  'a number instead of an inlined message': {
    bytes: () => body('v1', 'Pod', message(2, message(1, int(2, 1)))),
    want: /^proto: wrong wireType = 0 for field VolumeSource$/,
  },
  'a number instead of a map': {
    bytes: () => account(message(1, int(11, 1))),
    want: /^proto: wrong wireType = 0 for field labels$/,
  },
  'a string that is not UTF-8': {
    bytes: () => account(message(1, bytes(1, Buffer.from([97, 255])))),
    want: /^proto: string field contains invalid UTF-8$/,
  },
  'an invalid quantity': {
    bytes: () => body('v1', 'ResourceQuota', message(2, entry(1, 'cpu', message(2, text(1, 'much'))))),
    want: /^quantities must match the regular expression/,
  },
  'an IntOrString of a third kind': {
    bytes: () => body('policy/v1', 'PodDisruptionBudget', message(2, message(1, int(1, 2)))),
    want: /^impossible IntOrString\.Type$/,
  },
  'a year of five digits': {
    bytes: () => account(message(1, message(8, int(1, 253_402_300_800)))),
    want: /^proto: invalid Timestamp/,
  },
  'raw bytes that are not JSON': {
    bytes: () => revision(Buffer.from('{')),
    want: /^json parse error: /,
  },
  'raw JSON that is not UTF-8': {
    bytes: () => revision(Buffer.from([34, 255, 34])),
    want: /^proto: raw JSON contains invalid UTF-8$/,
  },
  'too deeply nested raw JSON': {
    bytes: () => revision(Buffer.from('['.repeat(200_000) + ']'.repeat(200_000))),
    want: /^json parse error: nested too deeply/,
  },
  'a number that JSON cannot represent': {
    bytes: () => definition(double(11, NaN)),
    want: /^json: unsupported value: NaN$/,
  },
  'too many fields': {
    bytes: () => account(message(1, ...Array<Buffer>(MAX_FIELDS + 1).fill(text(14, 'a')))),
    want: /^proto: too many fields/,
  },
  'too many messages': {
    bytes: () => account(message(1, ...Array<Buffer>(MAX_MESSAGES + 1).fill(message(13)))),
    want: /^proto: too many messages/,
  },
};

suite('decodeProtobuf rejects', () => {
  for (const [sentence, { bytes: broken, want }] of Object.entries(faults)) {
    test(sentence, () => assert.throws(() => decodeProtobuf(broken()), { name: 'ProtobufError', message: want }));
  }
});

test('messages may be nested up to the limit', () => {
  // The object, its spec, the version and the validation enclose the outermost schema.
  const deepest = MAX_MESSAGE_NESTING - 4;
  assert.ok(decodeProtobuf(definition(nestedSchema(deepest))));
  assert.throws(() => decodeProtobuf(definition(nestedSchema(deepest + 1))), {
    name: 'ProtobufError',
    message: 'proto: message nested too deeply: the limit is 64 levels',
  });
});
