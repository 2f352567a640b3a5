import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { timestamp } from '#lib/clock.ts';
import type { NodeFacts } from '#node/domains/domain-world.ts';
import { hasReport, needsLearning, reportedStatus } from '#node/domains/vmi-report.ts';
import type { Capabilities, Domain, DomainState } from '#node/hypervisor/hypervisor.ts';

const NOW = 1_900_000_000_000;

const aNode = (accelerator: Capabilities['accelerator'] = 'kvm'): NodeFacts => ({
  name: 'n1',
  hostIp: '127.0.0.1',
  capabilities: { machines: [], accelerator, version: 'QEMU 7.2' },
  guestUid: 64_055,
});
const aDomain = (current: DomainState = { state: 'running' }): Domain => ({
  id: 'u',
  name: 'ns/db',
  machine: 'pc-q35-7.2',
  startedAtMs: NOW,
  current,
});

function aVmi(status: VirtualMachineInstance['status'] = {}, domain: VirtualMachineInstance['spec']['domain'] = {}) {
  const vmi: VirtualMachineInstance = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'db' },
    spec: { domain },
    status,
  };
  return vmi;
}

const nic = { id: 'nic-default', type: 'interface', device: 'virtio', name: 'default' };
const devices = [{ id: 'rp0', type: 'controller', device: 'pcie-root-port' }, nic];
const facts = { domain: aDomain(), devices, node: aNode(), nowMs: NOW };
const macOf = (status: VirtualMachineInstance['status']) => status?.interfaces?.[0]?.mac;
const conditionTypes = (status: VirtualMachineInstance['status']) => status?.conditions?.map(({ type }) => type);

test('what the controller wrote stays as it is', () => {
  const others = { phase: 'Running', nodeName: 'n1', reason: 'x', activePods: { p: 'n1' } } as const;
  const conditions = [{ type: 'Ready', status: 'True' as const, lastTransitionTime: timestamp(0) }];
  const status = reportedStatus(aVmi({ ...others, conditions }), facts);
  assert.deepEqual({ ...status, conditions: status.conditions?.slice(0, 1) }, { ...status, ...others, conditions });
});

test('the guest is told as it is', () => {
  const spec = { cpu: { cores: 2 }, memory: { guest: '1Gi' }, resources: { requests: { memory: '2Gi' } } };
  const { machine, memory, currentCPUTopology, guestStarted, runtimeUser } = reportedStatus(aVmi({}, spec), facts);
  assert.deepEqual(machine, { type: 'pc-q35-7.2' });
  assert.deepEqual(memory, { guestAtBoot: '1Gi', guestCurrent: '1Gi', guestRequested: '1Gi' });
  assert.deepEqual(currentCPUTopology, { sockets: 1, cores: 2, threads: 1 });
  assert.deepEqual(guestStarted, { at: timestamp(NOW) });
  assert.equal(runtimeUser, 64_055);
});

test('MAC addresses are those of the definition, of the spec, or those told before', () => {
  const asked = { devices: { interfaces: [{ name: 'default', macAddress: '02:00:00:00:00:0a' }] } };
  const told = { interfaces: [{ name: 'default', mac: '02:00:00:00:00:0b' }] };
  const macs = new Map([['default', '02:00:00:00:00:0c']]);
  assert.equal(macOf(reportedStatus(aVmi(told, asked), { ...facts, macs })), '02:00:00:00:00:0c');
  assert.equal(macOf(reportedStatus(aVmi(told, asked), facts)), '02:00:00:00:00:0a');
  assert.equal(macOf(reportedStatus(aVmi(told), facts)), '02:00:00:00:00:0b');
  assert.equal(macOf(reportedStatus(aVmi(), facts)), undefined);
});

test('Paused is there while the guest is paused', () => {
  const paused = reportedStatus(aVmi(), { ...facts, domain: aDomain({ state: 'paused' }) });
  assert.deepEqual(conditionTypes(paused), ['Paused']);
  assert.deepEqual(conditionTypes(reportedStatus(aVmi(paused), facts)), []);
  const crashed = aDomain({ state: 'ended', how: 'crashed' });
  assert.deepEqual(conditionTypes(reportedStatus(aVmi(paused), { ...facts, domain: crashed })), []);
});

test('software emulation is said where the processor is emulated, simulation where nothing runs', () => {
  const emulated = reportedStatus(aVmi(), { ...facts, node: aNode('tcg') });
  assert.deepEqual(conditionTypes(emulated), ['SoftwareEmulation']);
  const simulated = reportedStatus(aVmi(), { ...facts, node: aNode('simulated') });
  assert.deepEqual([conditionTypes(simulated), simulated.guestStarted?.simulated], [[], true]);
});

test('what was told once is not told again, at whatever time', () => {
  const status = reportedStatus(aVmi(), { ...facts, node: aNode('tcg'), nowMs: NOW + 7000 });
  assert.equal(hasReport(aVmi(status), aDomain(), aNode('tcg')), true);
  assert.equal(hasReport(aVmi({ ...status, machine: { type: 'other' } }), aDomain(), aNode('tcg')), false);
  assert.equal(needsLearning(aVmi(status), aDomain()), false);
  assert.equal(needsLearning(aVmi(status), { ...aDomain(), startedAtMs: NOW + 1000 }), true);
  assert.equal(needsLearning(aVmi(), aDomain()), true);
});

test('a guest that could not write its disk was not paused by anybody', () => {
  const domain = aDomain({ state: 'paused', why: 'ioError' });
  const paused = reportedStatus(aVmi(), { ...facts, domain }).conditions?.find(({ type }) => type === 'Paused');
  assert.deepEqual([paused?.status, paused?.reason], ['True', 'PausedIOError']);
});
