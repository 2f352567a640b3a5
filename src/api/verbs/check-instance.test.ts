/** What is asked of a guest that runs: pausing, its agent, console, display, ports, migration. */
import type { MigrationState } from '#api/migration-state.ts';
import { aVmi, aForeignVmi, type Case, testVerbs } from '#api/verbs/testing/verb-cases.ts';

const running = aVmi('Running');
const withAgent = {
  ...running,
  status: { ...running.status, conditions: [{ type: 'AgentConnected', status: 'True' as const }] },
};

const OFF = '409 VM is not running';

const MOVES: MigrationState = { migrationUid: 'm' };
const AWAY = '409 VMI is migrating';

const cases: Record<string, Case> = {
  'a guest that runs can be paused': { verb: 'pause', vmi: aVmi('Running'), want: '200 node-1 pause' },
  'not twice': { verb: 'pause', vmi: aVmi('Running', { paused: true }), want: '409 VMI is already paused' },
  'nor before it runs': { verb: 'pause', vmi: aVmi('Scheduled'), want: OFF },
  'nor where it would be stopped for not answering': {
    verb: 'pause',
    vmi: aVmi('Running', { spec: { livenessProbe: { tcpSocket: { port: 22 } } } }),
    want: '403 Pausing VMIs with LivenessProbe is currently not supported',
  },
  'a guest whose agent is asked whether it lives can be paused': {
    verb: 'pause',
    vmi: aVmi('Running', { spec: { livenessProbe: { guestAgentPing: {} } } }),
    want: '200 node-1 pause',
  },
  'a guest is frozen by its agent': { verb: 'freeze', vmi: withAgent, want: '200 node-1 freeze' },
  'and thawed': { verb: 'unfreeze', vmi: withAgent, want: '200 node-1 unfreeze' },
  'not without one': {
    verb: 'freeze',
    vmi: aVmi('Running'),
    want: '409 VMI does not have guest agent connected',
  },
  'nor before it runs, by its agent': { verb: 'freeze', vmi: aVmi('Scheduled'), want: '409 VMI is not running' },
  'an agent tells of its guest': { verb: 'guestosinfo', vmi: withAgent, want: '200 node-1 guestosinfo' },
  'nobody else does': {
    verb: 'userlist',
    vmi: aVmi('Running'),
    want: '409 VMI does not have guest agent connected',
  },
  'a guest that stands still tells nothing': {
    verb: 'filesystemlist',
    vmi: aVmi('Running', { paused: true }),
    want: '409 VMI is paused',
  },
  'a paused guest can be unpaused': {
    verb: 'unpause',
    vmi: aVmi('Running', { paused: true }),
    want: '200 node-1 unpause',
  },
  'a guest that is not paused cannot be unpaused': {
    verb: 'unpause',
    vmi: aVmi('Running'),
    want: '409 VMI is not paused',
  },
  'nor one that does not run': { verb: 'unpause', vmi: aVmi('Failed'), want: '409 VMI is not running' },
  'a guest can be asked to reboot': { verb: 'softreboot', vmi: aVmi('Running'), want: '200 node-1 softreboot' },
  'but not a paused one': {
    verb: 'softreboot',
    vmi: aVmi('Running', { paused: true }),
    want: '409 VMI is paused',
  },
  'nor one that would not hear it': {
    verb: 'softreboot',
    vmi: aVmi('Running', { spec: { domain: { features: { acpi: { enabled: false } } } } }),
    want: '409 VMI neither have the agent connected nor the ACPI feature enabled',
  },
  'a guest can be reset': { verb: 'reset', vmi: aVmi('Running'), want: '200 node-1 reset' },
  'a pending one cannot': {
    verb: 'reset',
    vmi: aVmi('Pending'),
    want: '400 Failed to reset non-running VMI with phase Pending: Unable to connect to VirtualMachineInstance because phase is Pending instead of Running or Scheduled',
  },
  'a console needs a guest that runs': { verb: 'console', vmi: aVmi('Scheduling'), want: '400 VMI is not running' },
  'a console of a failed guest is a conflict': {
    verb: 'console',
    vmi: aVmi('Failed'),
    want: '409 VMI is in failed status',
  },
  'a console needs a serial port': {
    verb: 'console',
    vmi: aVmi('Running', { spec: { domain: { devices: { autoattachSerialConsole: false } } } }),
    want: '400 No serial consoles are present.',
  },
  'a display needs a guest that runs': { verb: 'vnc', vmi: aVmi('Scheduled'), want: '400 VMI is not running' },
  'a display is of the instance': { verb: 'vnc', vmi: aVmi('Running'), want: '200 node-1 vnc' },
  'also of a paused one': { verb: 'vnc', vmi: aVmi('Running', { paused: true }), want: '200 node-1 vnc' },
  'a picture needs a display': {
    verb: 'vnc/screenshot',
    vmi: aVmi('Running', { spec: { domain: { devices: { autoattachGraphicsDevice: false } } } }),
    want: '400 No graphics devices are present.',
  },
  'ports of a VM are those of its instance': {
    verb: 'portforward',
    vmi: aVmi('Running'),
    want: '200 node-1 portforward',
  },
  'a VM that was not started has none': { verb: 'portforward', want: '409 VMI is not started' },
  'those of a paused guest would not answer': {
    verb: 'portforward',
    vmi: aVmi('Running', { paused: true }),
    want: '409 VMI is paused',
  },
  'nor those of one that does not run': {
    verb: 'portforward',
    vmi: aVmi('Scheduling'),
    want: '400 VMI is not running',
  },
  'whoever may reach the VM may not reach an instance that only has its name': {
    verb: 'portforward',
    vmi: aForeignVmi(),
    want: '500 unable to retrieve vmi [db] for vm: it belongs to another owner',
  },
  'a running VM gets a migration of its name': {
    verb: 'migrate',
    vmi: aVmi('Running'),
    want: '202 kubevirt-migrate-vm-* {"vmiName":"db"}',
  },
  'to a node that has what is asked for': {
    verb: 'migrate',
    vmi: aVmi('Running'),
    options: { addedNodeSelector: { zone: 'b' } },
    want: '202 kubevirt-migrate-vm-* {"vmiName":"db","addedNodeSelector":{"zone":"b"}}',
  },
  'a VM without an instance goes nowhere': { verb: 'migrate', want: '404 not found' },
  'nor does an instance that only has the name': { verb: 'migrate', vmi: aForeignVmi(), want: '404 not found' },
  'nor one that does not run yet': { verb: 'migrate', vmi: aVmi('Scheduled'), want: OFF },
  'a guest on its way is not paused': { verb: 'pause', vmi: aVmi('Running', { migration: MOVES }), want: AWAY },
  'nor unpaused': { verb: 'unpause', vmi: aVmi('Running', { paused: true, migration: MOVES }), want: AWAY },
  'nor rebooted': { verb: 'softreboot', vmi: aVmi('Running', { migration: MOVES }), want: AWAY },
  'nor reset': { verb: 'reset', vmi: aVmi('Running', { migration: MOVES }), want: AWAY },
  'but its console is there': {
    verb: 'console',
    vmi: aVmi('Running', { migration: MOVES }),
    want: '200 node-1 console',
  },
  'and it can be stopped': {
    verb: 'stop',
    vmi: aVmi('Running', { migration: MOVES }),
    want: '202 ->Halted',
  },
  'a guest that has arrived is paused': {
    verb: 'pause',
    vmi: aVmi('Running', { migration: { ...MOVES, completed: true } }),
    want: '200 node-1 pause',
  },
};

testVerbs(cases);
