/** A schema with every kind of list and map, for the tests of this folder. */
import type { Schema } from '#kube/schema.ts';

const text: Schema = { type: 'string' };

const port: Schema = {
  type: 'object',
  properties: {
    port: { type: 'integer' },
    protocol: { type: 'string', default: 'TCP' },
    name: text,
    tags: { type: 'array', items: text, 'x-kubernetes-list-type': 'set' },
  },
};

export const SAMPLE: Schema = {
  type: 'object',
  properties: {
    kind: text,
    labels: { type: 'object', additionalProperties: text },
    spec: {
      type: 'object',
      properties: {
        size: { type: 'integer' },
        on: { type: 'boolean' },
        time: { type: 'string', format: 'date-time' },
        target: { 'x-kubernetes-int-or-string': true },
        ports: {
          type: 'array',
          items: port,
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['protocol', 'port'],
        },
        parts: {
          type: 'array',
          items: { type: 'object', properties: { name: text, size: { type: 'integer' }, free: { type: 'object' } } },
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['name'],
        },
        tags: { type: 'array', items: text, 'x-kubernetes-list-type': 'set' },
        numbers: { type: 'array', items: { type: 'number' }, 'x-kubernetes-list-type': 'set' },
        args: { type: 'array', items: text },
        selector: {
          type: 'object',
          'x-kubernetes-map-type': 'atomic',
          properties: { a: text, b: text },
        },
        patched: {
          type: 'array',
          items: { type: 'object', properties: { id: text, x: text } },
          'x-kubernetes-patch-strategy': 'merge',
          'x-kubernetes-patch-merge-key': 'id',
        },
        open: {
          type: 'object',
          'x-kubernetes-preserve-unknown-fields': true,
          properties: { inner: { type: 'object', properties: { known: text } } },
        },
        template: { type: 'object', 'x-kubernetes-embedded-resource': true, properties: { spec: { type: 'object' } } },
      },
    },
  },
};

/** Returns an object with these fields below `spec`. */
export const spec = (fields: Record<string, unknown>): { spec: Record<string, unknown> } => ({ spec: fields });
