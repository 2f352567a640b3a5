/**
 * The measured kind: a custom resource of about 2 KB with a structural schema of some depth. Its request bodies are
 * built once and only renumbered for each request.
 */

export const GROUP = 'bench.selfsame.io';
const VERSION = 'v1';
const DIGITS = 8;

/** A kind with the schema of Parcel under another name, for measurements that need several kinds. */
export interface ParcelKind {
  readonly kind: string;
  readonly plural: string;
  /** Labels in addition to those of all parcels. */
  readonly labels?: Readonly<Record<string, string>>;
}

export const PARCEL: ParcelKind = { kind: 'Parcel', plural: 'parcels' };

export function collectionPath(namespace: string, { plural } = PARCEL): string {
  return `/apis/${GROUP}/${VERSION}/namespaces/${namespace}/${plural}`;
}

export function parcelPath(namespace: string, prefix: string, number: number, kind = PARCEL): string {
  return `${collectionPath(namespace, kind)}/${parcelName(prefix, number)}`;
}

export function parcelName(prefix: string, number: number): string {
  return `${prefix}-${String(number).padStart(DIGITS, '0')}`;
}

const SEQUENCE = Buffer.from('"sequence":"');

/** Returns the number of the parcel whose JSON is between `start` and `end`, or -1 if there is none. */
export function sequenceIn(bytes: Buffer, start: number, end: number): number {
  const found = bytes.indexOf(SEQUENCE, start);
  if (found < 0 || found > end) return -1;
  let number = 0;
  const digits = found + SEQUENCE.length;
  for (let at = digits; at < digits + DIGITS; at++) number = number * 10 + bytes[at]! - 48;
  return number;
}

/** Creates request bodies: copies of one text with other digits. */
export class ParcelBodies {
  readonly #template: Buffer;
  readonly #places: number[] = [];

  constructor(prefix: string, kind = PARCEL) {
    const mark = '#'.repeat(DIGITS);
    this.#template = Buffer.from(JSON.stringify(parcel(`${prefix}-${mark}`, mark, kind)));
    for (let at = -1; (at = this.#template.indexOf(mark, at + 1)) >= 0;) this.#places.push(at);
  }

  body(number: number): Buffer {
    const bytes = Buffer.from(this.#template);
    const digits = String(number).padStart(DIGITS, '0');
    for (const place of this.#places) bytes.write(digits, place, 'latin1');
    return bytes;
  }
}

export function parcel(name: string, sequence: string, { kind, labels }: ParcelKind): object {
  const stop = (city: string, hour: number) => ({
    city,
    window: { from: `${hour}:00`, until: `${hour + 2}:30`, zone: 'Europe/Berlin' },
    position: { latitude: 52.5163, longitude: 13.3777 },
    handlers: ['unload', 'scan', 'weigh', 'load'],
  });
  const item = (index: number) => ({
    name: `item-${index}`,
    quantity: index * 3,
    weight: { value: 12.5 * index, unit: 'kg' },
    properties: { colour: 'anthracite', material: 'aluminium', origin: 'Hamburg' },
    tags: ['fragile', 'insured', 'return'],
  });
  return {
    apiVersion: `${GROUP}/${VERSION}`,
    kind,
    metadata: {
      name,
      labels: { app: 'bench', tier: 'standard', region: 'north', turn: '00000000', ...labels },
      annotations: { sequence, 'bench.selfsame.io/owner': 'the benchmark of the embedded engine' },
    },
    spec: {
      priority: 7,
      class: 'express',
      route: { carrier: 'north-line', stops: [stop('Hamburg', 10), stop('Hannover', 13), stop('Berlin', 17)] },
      contents: { sealed: true, items: [1, 2, 3, 4].map(item) },
      instructions: 'Ring twice; leave nothing at the door; call the office when nobody opens before noon.',
      limits: { retries: 3, holdSeconds: 86_400 },
    },
  };
}

const text = { type: 'string', maxLength: 256 } as const;
const texts = { type: 'array', maxItems: 16, items: text } as const;

const schema = {
  type: 'object',
  required: ['spec'],
  properties: {
    spec: {
      type: 'object',
      required: ['route', 'contents'],
      properties: {
        priority: { type: 'integer', minimum: 0, maximum: 10, default: 5 },
        class: { type: 'string', enum: ['economy', 'standard', 'express'] },
        instructions: text,
        insured: { type: 'boolean', default: true },
        route: {
          type: 'object',
          required: ['carrier'],
          properties: {
            carrier: { type: 'string', minLength: 1, pattern: '^[a-z-]+$' },
            stops: {
              type: 'array',
              maxItems: 32,
              items: {
                type: 'object',
                required: ['city'],
                properties: {
                  city: text,
                  window: { type: 'object', properties: { from: text, until: text, zone: text } },
                  position: {
                    type: 'object',
                    properties: { latitude: { type: 'number' }, longitude: { type: 'number' } },
                  },
                  handlers: texts,
                },
              },
            },
          },
        },
        contents: {
          type: 'object',
          properties: {
            sealed: { type: 'boolean' },
            items: {
              type: 'array',
              'x-kubernetes-list-type': 'map',
              'x-kubernetes-list-map-keys': ['name'],
              items: {
                type: 'object',
                required: ['name'],
                properties: {
                  name: text,
                  quantity: { type: 'integer', minimum: 0 },
                  weight: {
                    type: 'object',
                    properties: { value: { type: 'number' }, unit: { type: 'string', enum: ['kg', 'g'] } },
                  },
                  properties: { type: 'object', additionalProperties: text },
                  tags: texts,
                },
              },
            },
          },
        },
        limits: {
          type: 'object',
          properties: { retries: { type: 'integer', maximum: 10 }, holdSeconds: { type: 'integer', minimum: 0 } },
        },
      },
    },
    status: { type: 'object', properties: { phase: text, observedGeneration: { type: 'integer' } } },
  },
} as const;

export function definitionOf({ kind, plural }: ParcelKind) {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${GROUP}` },
    spec: {
      group: GROUP,
      scope: 'Namespaced',
      names: { plural, singular: kind.toLowerCase(), kind, listKind: `${kind}List` },
      versions: [
        {
          name: VERSION,
          served: true,
          storage: true,
          subresources: { status: {} },
          schema: { openAPIV3Schema: schema },
        },
      ],
    },
  };
}
