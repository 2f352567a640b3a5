/** Builders for parts of specs, and a test driver that validates a table of them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkInstanceSpec } from '#api/validation/kinds/instance-rules.ts';
import { aSpec, CONFIGURATION } from '#api/validation/testing/valid-objects.ts';

export interface Case {
  /** A merge patch on a valid spec. */
  readonly spec: unknown;
  /** The errors, without the leading `spec.domain.` or `spec.`; none if the spec is valid. */
  readonly want?: string[];
}

export const devices = (fields: object) => ({ domain: { devices: fields } });
export const bootloader = (fields: unknown, more: object = {}) => ({
  domain: { firmware: { bootloader: fields }, ...more },
});
export const volumes = (...list: object[]) => ({
  ...devices({ disks: list.map((volume) => ({ name: (volume as { name: string }).name })) }),
  volumes: list,
});
export const nics = (interfaces: object[], networks: object[]) => ({ ...devices({ interfaces }), networks });

export function testRules(cases: Readonly<Record<string, Case>>): void {
  for (const [name, { spec, want = [] }] of Object.entries(cases)) {
    test(name, () => {
      const errors = checkInstanceSpec(aSpec(spec), 'spec', CONFIGURATION);
      const texts = errors.map(({ field, message }) => `${field.replace(/^spec\.(?:domain\.)?/, '')}: ${message}`);
      assert.deepEqual(texts, want);
    });
  }
}
