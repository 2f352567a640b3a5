import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { everything } from '#engine/discovery/testing/sample-resource.ts';
import { encodeGnosticV2 } from '#engine/openapi/gnostic-v2.ts';
import { ProtobufWriter } from '#engine/openapi/protobuf-writer.ts';
import { openApiV2 } from '#engine/openapi/v2.ts';

/** The fields of a message in wire order. Parsed independently of the writer under test. */
type Message = [field: number, value: number | Buffer][];

function read(bytes: Buffer): Message {
  const message: Message = [];
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let shift = 1; ; shift *= 128) {
      const byte = bytes[at++];
      assert.ok(byte !== undefined, 'the varint must end within the message');
      value += (byte & 0x7f) * shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.length) {
    const tag = varint();
    const field = Math.floor(tag / 8);
    if (tag % 8 === 0) {
      message.push([field, varint()]);
    } else {
      assert.equal(tag % 8, 2, 'only varints and length-delimited fields are expected');
      const size = varint();
      assert.ok(at + size <= bytes.length, 'the field must end within its message');
      message.push([field, bytes.subarray(at, at + size)]);
      at += size;
    }
  }
  return message;
}

const all = (message: Message, field: number) =>
  message.filter(([number]) => number === field).map(([, value]) => value as Buffer);
const child = (message: Message, ...path: number[]): Message => {
  let current = message;
  for (const field of path) {
    const [value] = all(current, field);
    assert.ok(value !== undefined, `field ${field} of ${path.join('.')} must exist`);
    current = read(value);
  }
  return current;
};
const text = (message: Message, field: number) => all(message, field)[0]?.toString();
const texts = (message: Message, field: number) => all(message, field).map(String);
/** Returns the named values of a map message by name. */
const named = (message: Message, field: number) =>
  new Map(all(message, field).map((pair) => [text(read(pair), 1)!, child(read(pair), 2)]));
const extensions = (message: Message, field: number) =>
  Object.fromEntries([...named(message, field)].map(([name, any]) => [name, JSON.parse(text(any, 2)!) as unknown]));

const document = read(encodeGnosticV2(openApiV2(everything)));
const definitions = named(child(document, 9), 1);
const paths = named(child(document, 8), 2);

/** Schema fields: type 22, items 23, properties 25, additionalProperties 21, extensions 31. */
const property = (schema: Message, name: string) => named(child(schema, 25), 1).get(name)!;

test('the document has swagger version 2.0 and the title Kubernetes', () => {
  assert.equal(text(document, 1), '2.0');
  assert.equal(text(child(document, 2), 1), 'Kubernetes');
  assert.deepEqual(texts(document, 7), ['application/json', 'application/yaml']);
});

test('the document contains all definitions and paths of the JSON document', () => {
  const swagger = openApiV2(everything);
  assert.deepEqual([...definitions.keys()], Object.keys(swagger.definitions));
  assert.deepEqual([...paths.keys()], Object.keys(swagger.paths));
});

test('a definition carries its kind as an extension', () => {
  const pod = definitions.get('io.k8s.api.core.v1.Pod')!;
  assert.deepEqual(extensions(pod, 31), {
    'x-kubernetes-group-version-kind': [{ group: '', version: 'v1', kind: 'Pod' }],
  });
  assert.equal(text(child(pod, 22), 1), 'object');
});

test('a schema keeps references, required fields, items, map values and merge keys', () => {
  const pod = definitions.get('io.k8s.api.core.v1.Pod')!;
  assert.equal(text(property(pod, 'metadata'), 1), '#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta');
  const core = (name: string) => `io.k8s.api.core.v1.${name}`;
  assert.equal(text(property(pod, 'spec'), 1), `#/definitions/${core('PodSpec')}`);
  const spec = definitions.get(core('PodSpec'))!;
  assert.deepEqual(texts(spec, 19), ['containers']);
  const containers = property(spec, 'containers');
  assert.equal(text(child(containers, 22), 1), 'array');
  assert.equal(extensions(containers, 31)['x-kubernetes-patch-merge-key'], 'name');
  assert.equal(text(child(containers, 23, 1), 1), `#/definitions/${core('Container')}`);
  const container = definitions.get(core('Container'))!;
  const port = text(property(container, 'port'), 1)!.replace('#/definitions/', '');
  const intOrString = definitions.get(port)!;
  assert.deepEqual([text(child(intOrString, 22), 1), text(intOrString, 2)], ['string', 'int-or-string']);
  const values = child(property(container, 'limits'), 21, 1);
  assert.equal(text(values, 1), `#/definitions/${port}`);
});

test('a schema that allows any value has neither type nor properties', () => {
  const gadget = definitions.get('local.golden.v1.Gadget')!;
  const status = property(gadget, 'status');
  assert.deepEqual([all(status, 22), all(status, 25)], [[], []]);
  assert.equal(text(property(gadget, 'spec'), 4), 'desired state');
});

test('PATCH has its kind, a body and the query parameter dryRun; the path has the parameter name', () => {
  const item = paths.get('/apis/golden.local/v1/namespaces/{namespace}/gadgets/{name}')!;
  const patch = child(item, 8);
  assert.deepEqual(extensions(patch, 13), {
    'x-kubernetes-action': 'patch',
    'x-kubernetes-group-version-kind': { group: 'golden.local', version: 'v1', kind: 'Gadget' },
  });
  const parameters = all(patch, 8).map((parameter) => child(read(parameter), 1));
  const body = child(parameters[0]!, 1);
  assert.deepEqual([text(body, 2), text(body, 3)], ['body', 'body']);
  assert.equal(text(child(body, 5), 1), '#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.Patch');
  const query = parameters.slice(1).map((parameter) => child(parameter, 2, 3));
  assert.deepEqual(
    query.map((parameter) => [text(parameter, 2), text(parameter, 4), text(parameter, 6)]),
    [
      ['query', 'dryRun', 'string'],
      ['query', 'fieldManager', 'string'],
      ['query', 'fieldValidation', 'string'],
      ['query', 'force', 'boolean'],
    ],
  );
  const inPath = all(item, 9).map((parameter) => child(read(parameter), 1, 2, 4));
  assert.deepEqual(
    inPath.map((parameter) => [parameter.find(([field]) => field === 1)?.[1], text(parameter, 4)]),
    [
      [1, 'namespace'],
      [1, 'name'],
    ],
  );
  const responseModel = named(child(patch, 9), 1).get('200')!;
  assert.equal(text(child(responseModel, 1, 2, 1), 1), '#/definitions/local.golden.v1.Gadget');
});

test('text survives encoding at any nesting depth', () => {
  const long = fc.integer({ min: 1, max: 70_000 }).map((length) => 'ä'.repeat(length));
  const nesting = fc.letrec<{ node: Node }>((tie) => ({
    node: fc.record(
      {
        text: fc.oneof(fc.string({ unit: 'grapheme', minLength: 1 }), long),
        field: fc.integer({ min: 2, max: 5000 }),
        children: fc.oneof({ maxDepth: 5 }, fc.constant<Node[]>([]), fc.array(tie('node'), { maxLength: 3 })),
      },
      { noNullPrototype: true },
    ),
  })).node;
  fc.assert(
    fc.property(nesting, (node) => {
      const writer = new ProtobufWriter();
      writeNode(writer, node);
      assert.deepEqual(readNode(read(writer.finish()), node), node);
    }),
    { numRuns: 60 },
  );
});

test('a small message survives any growth of the buffer', () => {
  for (let padding = 65_510; padding < 65_550; padding++) {
    const writer = new ProtobufWriter();
    writer.string(1, 'x'.repeat(padding));
    writer.message(2, (below) => below.bool(3, true));
    assert.deepEqual(child(read(writer.finish()), 2), [[3, 1]], `after ${padding} bytes`);
  }
});

interface Node {
  text: string;
  field: number;
  children: Node[];
}

function writeNode(writer: ProtobufWriter, { text: content, field, children }: Node): void {
  writer.string(1, content);
  for (const below of children) writer.message(field, (nested) => writeNode(nested, below));
}

function readNode(message: Message, shape: Node): Node {
  const below = all(message, shape.field).map((bytes, index) => readNode(read(bytes), shape.children[index]!));
  return { text: text(message, 1)!, field: shape.field, children: below };
}
