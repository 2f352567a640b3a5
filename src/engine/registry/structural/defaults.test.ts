import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compileSchema } from '#engine/registry/structural/compile.ts';
import type { Schema } from '#kube/schema.ts';

const schema: Schema = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: {
        mode: { type: 'string', default: 'auto' },
        size: { type: 'integer' },
        note: { type: 'string', nullable: true, default: 'none' },
        limits: {
          type: 'object',
          default: { cpu: 1 },
          properties: { cpu: {}, memory: { type: 'integer', default: 2 } },
        },
        probe: { type: 'object', properties: { period: { type: 'integer', default: 10 } } },
        ports: {
          type: 'array',
          items: { type: 'object', properties: { protocol: { type: 'string', default: 'TCP' } } },
        },
        sizes: { type: 'array', items: { type: 'integer', default: 7 } },
        map: { type: 'object', additionalProperties: { type: 'object', properties: { on: { default: true } } } },
        counts: { type: 'object', additionalProperties: { type: 'integer' } },
      },
    },
  },
};

const full = { mode: 'auto', note: 'none', limits: { cpu: 1, memory: 2 } };

const cases: Record<string, { object: Record<string, unknown>; want: Record<string, unknown> }> = {
  'sets absent fields, including those inside a default': { object: { spec: {} }, want: { spec: full } },
  'sets nothing inside absent objects': { object: {}, want: {} },
  'keeps existing values': {
    object: { spec: { mode: '', note: 'x', limits: { memory: 0 } } },
    want: { spec: { mode: '', note: 'x', limits: { memory: 0 } } },
  },
  'replaces a null that is not allowed': { object: { spec: { mode: null, limits: null } }, want: { spec: full } },
  'keeps a null that is allowed': { object: { spec: { note: null } }, want: { spec: { ...full, note: null } } },
  'removes a null that is not allowed and has no default': {
    object: { spec: { size: null, probe: null, counts: { a: null, b: 1 } } },
    want: { spec: { ...full, counts: { b: 1 } } },
  },
  'keeps a null in a list without default': {
    object: { spec: { ports: [null, {}], sizes: [null, 1] } },
    want: { spec: { ...full, ports: [null, { protocol: 'TCP' }], sizes: [7, 1] } },
  },
  'descends into objects and the values of maps': {
    object: { spec: { probe: {}, map: { a: {}, b: { on: false } } } },
    want: { spec: { ...full, probe: { period: 10 }, map: { a: { on: true }, b: { on: false } } } },
  },
  'leaves values of the wrong type to validation': {
    object: { spec: { probe: 'x', ports: {} } },
    want: { spec: { ...full, probe: 'x', ports: {} } },
  },
};

const sparse: Schema = {
  type: 'object',
  required: ['needed'],
  properties: {
    labels: { type: 'object', additionalProperties: { type: 'string' } },
    needed: { type: 'array', items: { type: 'string' } },
    struct: { type: 'object', properties: { list: { type: 'array', items: { type: 'string' } } } },
    items: { type: 'array', items: { type: 'object', additionalProperties: { type: 'string' } } },
    maps: { type: 'object', additionalProperties: { type: 'array', items: { type: 'string' } } },
    free: { 'x-kubernetes-preserve-unknown-fields': true },
    ports: { type: 'array', items: { type: 'integer' }, default: [80] },
  },
};

const emptied: Record<string, { object: Record<string, unknown>; want: Record<string, unknown> }> = {
  'drops empty maps and lists': { object: { labels: {}, items: [] }, want: { ports: [80] } },
  'drops them inside of objects': { object: { struct: { list: [] } }, want: { struct: {}, ports: [80] } },
  'keeps them where they are required': { object: { needed: [] }, want: { needed: [], ports: [80] } },
  'keeps empty objects that are not maps': { object: { struct: {} }, want: { struct: {}, ports: [80] } },
  'keeps items and the values of maps': {
    object: { items: [{}], maps: { a: [] } },
    want: { items: [{}], maps: { a: [] }, ports: [80] },
  },
  'keeps unknown fields': { object: { free: {}, other: [] }, want: { free: {}, other: [], ports: [80] } },
  'replaces an empty list by its default': { object: { ports: [] }, want: { ports: [80] } },
  'drops a map that is empty without its nulls': { object: { labels: { a: null } }, want: { ports: [80] } },
};

describe('applyDefaults with dropEmpty', () => {
  const compiled = compileSchema(sparse, { dropEmpty: true });
  for (const [name, { object, want }] of Object.entries(emptied)) {
    it(name, () => {
      compiled.applyDefaults(object);
      assert.deepEqual(object, want);
    });
  }

  it('is disabled for custom kinds', () => {
    const object = { labels: {}, ports: [] };
    compileSchema(sparse).applyDefaults(object);
    assert.deepEqual(object, { labels: {}, ports: [] });
  });
});

describe('applyDefaults', () => {
  const compiled = compileSchema(schema);
  for (const [name, { object, want }] of Object.entries(cases)) {
    it(name, () => {
      compiled.applyDefaults(object);
      assert.deepEqual(object, want);
    });
  }

  it('copies a default for each object', () => {
    const one = { spec: {} as { limits?: { cpu: number } } };
    const two = { spec: {} as { limits?: { cpu: number } } };
    compiled.applyDefaults(one);
    compiled.applyDefaults(two);
    one.spec.limits!.cpu = 99;
    assert.equal(two.spec.limits?.cpu, 1);
    assert.deepEqual(schema.properties?.['spec']?.properties?.['limits']?.default, { cpu: 1 });
  });
});
