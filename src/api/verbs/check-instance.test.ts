/** Tests verbs of a running guest: pause, guest agent, console, display, ports, migration. */
import type { MigrationState } from '#api/migration/migration-state.ts';
import { aVmi, aForeignVmi, type Case, testVerbs } from '#api/verbs/testing/verb-cases.ts';

const running = aVmi('Running');
const withAgent = {
  ...running,
  status: { ...running.status, conditions: [{ type: 'AgentConnected', status: 'True' as const }] },
};

const OFF = '409 VM is not running';

const ACTIVE: MigrationState = { migrationUid: 'm' };
const MIGRATING = '409 VMI is migrating';

const cases: Record<string, Case> = {
  'allowed for a running guest': { verb: 'pause', vmi: aVmi('Running'), want: '200 node-1 pause' },
  'refused for a paused guest': {
    verb: 'pause',
    vmi: aVmi('Running', { paused: true }),
    want: '409 VMI is already paused',
  },
  'refused before the guest runs': { verb: 'pause', vmi: aVmi('Scheduled'), want: OFF },
  'refused with a TCP liveness probe': {
    verb: 'pause',
    vmi: aVmi('Running', { spec: { livenessProbe: { tcpSocket: { port: 22 } } } }),
    want: '403 Pausing VMIs with LivenessProbe is currently not supported',
  },
  'allowed with a guest agent liveness probe': {
    verb: 'pause',
    vmi: aVmi('Running', { spec: { livenessProbe: { guestAgentPing: {} } } }),
    want: '200 node-1 pause',
  },
  'allowed with a guest agent': { verb: 'freeze', vmi: withAgent, want: '200 node-1 freeze' },
  'allowed for a guest with an agent': { verb: 'unfreeze', vmi: withAgent, want: '200 node-1 unfreeze' },
  'refused without a guest agent': {
    verb: 'freeze',
    vmi: aVmi('Running'),
    want: '409 VMI does not have guest agent connected',
  },
  'refused for a guest that does not run': { verb: 'freeze', vmi: aVmi('Scheduled'), want: '409 VMI is not running' },
  'allowed if the agent is connected': { verb: 'guestosinfo', vmi: withAgent, want: '200 node-1 guestosinfo' },
  'refused without a connected agent': {
    verb: 'userlist',
    vmi: aVmi('Running'),
    want: '409 VMI does not have guest agent connected',
  },
  'refused for a guest that is paused': {
    verb: 'filesystemlist',
    vmi: aVmi('Running', { paused: true }),
    want: '409 VMI is paused',
  },
  'allowed for a paused guest': {
    verb: 'unpause',
    vmi: aVmi('Running', { paused: true }),
    want: '200 node-1 unpause',
  },
  'refused for a guest that is not paused': {
    verb: 'unpause',
    vmi: aVmi('Running'),
    want: '409 VMI is not paused',
  },
  'refused for a failed guest': { verb: 'unpause', vmi: aVmi('Failed'), want: '409 VMI is not running' },
  'allowed for a guest with ACPI': { verb: 'softreboot', vmi: aVmi('Running'), want: '200 node-1 softreboot' },
  'refused while the guest is paused': {
    verb: 'softreboot',
    vmi: aVmi('Running', { paused: true }),
    want: '409 VMI is paused',
  },
  'refused without agent and ACPI': {
    verb: 'softreboot',
    vmi: aVmi('Running', { spec: { domain: { features: { acpi: { enabled: false } } } } }),
    want: '409 VMI neither have the agent connected nor the ACPI feature enabled',
  },
  'allowed for a guest that runs': { verb: 'reset', vmi: aVmi('Running'), want: '200 node-1 reset' },
  'refused for a pending guest': {
    verb: 'reset',
    vmi: aVmi('Pending'),
    want: '400 Failed to reset non-running VMI with phase Pending: Unable to connect to VirtualMachineInstance because phase is Pending instead of Running or Scheduled',
  },
  'refused for a guest that is being scheduled': {
    verb: 'console',
    vmi: aVmi('Scheduling'),
    want: '400 VMI is not running',
  },
  'a conflict for a failed guest': {
    verb: 'console',
    vmi: aVmi('Failed'),
    want: '409 VMI is in failed status',
  },
  'refused without a serial port': {
    verb: 'console',
    vmi: aVmi('Running', { spec: { domain: { devices: { autoattachSerialConsole: false } } } }),
    want: '400 No serial consoles are present.',
  },
  'refused for a guest that is only scheduled': { verb: 'vnc', vmi: aVmi('Scheduled'), want: '400 VMI is not running' },
  'allowed for the instance': { verb: 'vnc', vmi: aVmi('Running'), want: '200 node-1 vnc' },
  'allowed while the guest is paused': { verb: 'vnc', vmi: aVmi('Running', { paused: true }), want: '200 node-1 vnc' },
  'refused without a display': {
    verb: 'vnc/screenshot',
    vmi: aVmi('Running', { spec: { domain: { devices: { autoattachGraphicsDevice: false } } } }),
    want: '400 No graphics devices are present.',
  },
  'allowed for a VM with a running instance': {
    verb: 'portforward',
    vmi: aVmi('Running'),
    want: '200 node-1 portforward',
  },
  'refused for a VM without an instance': { verb: 'portforward', want: '409 VMI is not started' },
  'refused for a paused instance': {
    verb: 'portforward',
    vmi: aVmi('Running', { paused: true }),
    want: '409 VMI is paused',
  },
  'refused for an instance that does not run': {
    verb: 'portforward',
    vmi: aVmi('Scheduling'),
    want: '400 VMI is not running',
  },
  'refused for an instance of another owner': {
    verb: 'portforward',
    vmi: aForeignVmi(),
    want: '500 unable to retrieve vmi [db] for vm: it belongs to another owner',
  },
  'creates a migration for a running VM': {
    verb: 'migrate',
    vmi: aVmi('Running'),
    want: '202 kubevirt-migrate-vm-* {"vmiName":"db"}',
  },
  'creates a migration with a node selector': {
    verb: 'migrate',
    vmi: aVmi('Running'),
    options: { addedNodeSelector: { zone: 'b' } },
    want: '202 kubevirt-migrate-vm-* {"vmiName":"db","addedNodeSelector":{"zone":"b"}}',
  },
  'not found without an instance': { verb: 'migrate', want: '404 not found' },
  'not found for an instance of another owner': { verb: 'migrate', vmi: aForeignVmi(), want: '404 not found' },
  'refused for an instance that does not run yet': { verb: 'migrate', vmi: aVmi('Scheduled'), want: OFF },
  'refused for a migrating guest': { verb: 'pause', vmi: aVmi('Running', { migration: ACTIVE }), want: MIGRATING },
  'refused for a paused guest that is migrating': {
    verb: 'unpause',
    vmi: aVmi('Running', { paused: true, migration: ACTIVE }),
    want: MIGRATING,
  },
  'refused while the guest migrates': {
    verb: 'softreboot',
    vmi: aVmi('Running', { migration: ACTIVE }),
    want: MIGRATING,
  },
  'refused during a migration': { verb: 'reset', vmi: aVmi('Running', { migration: ACTIVE }), want: MIGRATING },
  'allowed during a migration': {
    verb: 'console',
    vmi: aVmi('Running', { migration: ACTIVE }),
    want: '200 node-1 console',
  },
  'allowed while the guest migrates': {
    verb: 'stop',
    vmi: aVmi('Running', { migration: ACTIVE }),
    want: '202 ->Halted',
  },
  'allowed after a migration': {
    verb: 'pause',
    vmi: aVmi('Running', { migration: { ...ACTIVE, completed: true } }),
    want: '200 node-1 pause',
  },
};

testVerbs(cases);
