import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Client } from '#client/client.ts';
import { conflict, forbidden, notFound } from '#kube/api-error.ts';
import type { Stored } from '#kube/meta.ts';
import { aDefinition } from '#node/hypervisor/testing/a-definition.ts';
import { writeVmiStatus } from '#node/domains/write-vmi-status.ts';

const NAME = { namespace: 'ns', name: 'db' };
const { signal } = new AbortController();
const facts: Parameters<typeof writeVmiStatus>[1] = {
  domain: {
    ...{ id: 'u', name: 'ns/db', machine: 'pc-q35-7.2', startedAtMs: 0, deviceEvents: 0 },
    current: { state: 'running' },
  },
  inspection: { definition: { ...aDefinition(), devices: [] }, unplugging: [] },
  ...{ reading: undefined, hotplug: undefined, nowMs: 0 },
  node: {
    ...{ name: 'n1', hostIp: '127.0.0.1', sandboxed: false },
    capabilities: { machines: [], accelerator: 'tcg', version: 'QEMU 7.2' },
  },
};

function aVmi(resourceVersion: string, nodeName = 'n1', uid = 'u'): Stored<VirtualMachineInstance> {
  const metadata = { ...NAME, uid, resourceVersion, creationTimestamp: '2030-03-17T17:46:40Z' };
  return {
    ...{ apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', metadata },
    ...{ spec: { domain: {} }, status: { nodeName } },
  };
}

const CONFLICT = conflict(VIRTUAL_MACHINE_INSTANCES, 'db', 'it was changed');
const FORBIDDEN = forbidden(VIRTUAL_MACHINE_INSTANCES, 'db', 'it is on another node');
const GONE = notFound(VIRTUAL_MACHINE_INSTANCES, 'db');

/** Writes the status. `now` is the instance as the API returns it; undefined if it is gone. */
async function write(refusals: readonly Error[], now: Stored<VirtualMachineInstance> | undefined) {
  const remaining = [...refusals];
  const calls: string[] = [];
  const client = {
    async get() {
      calls.push('get');
      if (now === undefined) throw GONE;
      return now;
    },
    async update(_: unknown, { metadata }: { metadata: { resourceVersion: string } }) {
      calls.push(`update ${metadata.resourceVersion}`);
      const refusal = remaining.shift();
      if (refusal !== undefined) throw refusal;
      return aVmi('9');
    },
  } as unknown as Client;
  const written = await writeVmiStatus(aVmi('1'), facts, { client, signal }).catch((error: unknown) => error);
  return { calls, written };
}

describe('the status of an instance', () => {
  const cases: Record<string, { refusals: readonly Error[]; now?: string[]; calls: string[]; want: string }> = {
    'is written': { refusals: [], calls: ['update 1'], want: 'written' },
    'is written again after a conflict': {
      ...{ refusals: [CONFLICT], now: ['2'] },
      ...{ calls: ['update 1', 'get', 'update 2'], want: 'written' },
    },
    'is not written if the API forbids it and the instance is on another node': {
      ...{ refusals: [FORBIDDEN], now: ['2', 'n2'] },
      ...{ calls: ['update 1', 'get'], want: 'nothing' },
    },
    'is not written after a conflict if the instance is on another node': {
      ...{ refusals: [CONFLICT], now: ['2', 'n2'] },
      ...{ calls: ['update 1', 'get'], want: 'nothing' },
    },
    'causes an error if the API forbids it although the instance is on this node': {
      ...{ refusals: [FORBIDDEN], now: ['1'] },
      ...{ calls: ['update 1', 'get'], want: 'an error' },
    },
    'is not written if the instance is gone': { refusals: [CONFLICT], calls: ['update 1', 'get'], want: 'nothing' },
    'is not written if another instance has the name': {
      ...{ refusals: [CONFLICT], now: ['2', 'n1', 'other'] },
      ...{ calls: ['update 1', 'get'], want: 'nothing' },
    },
  };
  for (const [sentence, { refusals, now, calls, want }] of Object.entries(cases)) {
    it(sentence, async () => {
      const [version = '', ...rest] = now ?? [];
      const result = await write(refusals, now && aVmi(version, ...rest));
      const is = result.written === undefined ? 'nothing' : result.written instanceof Error ? 'an error' : 'written';
      assert.deepEqual({ calls: result.calls, want: is }, { calls, want });
    });
  }
});
