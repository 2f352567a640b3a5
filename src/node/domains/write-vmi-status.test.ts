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
  inspection: { definition: { ...aDefinition(), devices: [] }, leaving: [] },
  ...{ reading: undefined, hotplug: undefined, nowMs: 0 },
  node: { name: 'n1', hostIp: '127.0.0.1', capabilities: { machines: [], accelerator: 'tcg', version: 'QEMU 7.2' } },
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

/** `now`: what it is when it is read; undefined where it is gone. */
async function write(refusals: readonly Error[], now: Stored<VirtualMachineInstance> | undefined) {
  const left = [...refusals];
  const asked: string[] = [];
  const client = {
    async get() {
      asked.push('get');
      if (now === undefined) throw GONE;
      return now;
    },
    async update(_: unknown, { metadata }: { metadata: { resourceVersion: string } }) {
      asked.push(`update ${metadata.resourceVersion}`);
      const refusal = left.shift();
      if (refusal !== undefined) throw refusal;
      return aVmi('9');
    },
  } as unknown as Client;
  const written = await writeVmiStatus(aVmi('1'), facts, { client, signal }).catch((error: unknown) => error);
  return { asked, written };
}

describe('what a node tells of an instance', () => {
  const cases: Record<string, { refusals: readonly Error[]; now?: string[]; asked: string[]; want: string }> = {
    'is written': { refusals: [], asked: ['update 1'], want: 'written' },
    'is written again where somebody else was faster': {
      ...{ refusals: [CONFLICT], now: ['2'] },
      ...{ asked: ['update 1', 'get', 'update 2'], want: 'written' },
    },
    'is nothing where it has gone to another node': {
      ...{ refusals: [FORBIDDEN], now: ['2', 'n2'] },
      ...{ asked: ['update 1', 'get'], want: 'nothing' },
    },
    'is nothing either where that is seen from a conflict': {
      ...{ refusals: [CONFLICT], now: ['2', 'n2'] },
      ...{ asked: ['update 1', 'get'], want: 'nothing' },
    },
    'is an error where it is ours, and refused all the same': {
      ...{ refusals: [FORBIDDEN], now: ['1'] },
      ...{ asked: ['update 1', 'get'], want: 'an error' },
    },
    'is nothing where it is gone': { refusals: [CONFLICT], asked: ['update 1', 'get'], want: 'nothing' },
    'is nothing where another one has its name': {
      ...{ refusals: [CONFLICT], now: ['2', 'n1', 'other'] },
      ...{ asked: ['update 1', 'get'], want: 'nothing' },
    },
  };
  for (const [what, { refusals, now, asked, want }] of Object.entries(cases)) {
    it(what, async () => {
      const [version = '', ...rest] = now ?? [];
      const result = await write(refusals, now && aVmi(version, ...rest));
      const is = result.written === undefined ? 'nothing' : result.written instanceof Error ? 'an error' : 'written';
      assert.deepEqual({ asked: result.asked, want: is }, { asked, want });
    });
  }
});
