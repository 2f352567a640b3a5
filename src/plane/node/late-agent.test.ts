import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { HOST_CODES } from '#api/host-api.ts';
import type { EndpointAgent } from '#node/endpoint/endpoint-agent.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { createLateAgent } from '#plane/node/late-agent.ts';

/** Returns an agent that records its recorded. */
function recordingAgent(recorded: string[]): EndpointAgent {
  const verb = (name: string) => async (id: string) => void recorded.push(`${name} ${id}`);
  return {
    find: (namespace, name) => void recorded.push(`find ${namespace}/${name}`),
    pause: verb('pause'),
    resume: verb('resume'),
    softReboot: verb('softReboot'),
    reset: verb('reset'),
    freeze: async (id, seconds) => void recorded.push(`freeze ${id} ${seconds}`),
    unfreeze: verb('unfreeze'),
    async readGuest(id, what) {
      recorded.push(`readGuest ${id} ${what}`);
      return {};
    },
    async openConsole(id) {
      recorded.push(`openConsole ${id}`);
      return new PassThrough();
    },
    async openDisplay(id) {
      recorded.push(`openDisplay ${id}`);
      return new PassThrough();
    },
    async screenshot(id) {
      recorded.push(`screenshot ${id}`);
      return Buffer.alloc(0);
    },
    async openPort(id, { port, protocol }) {
      recorded.push(`openPort ${id} ${port}/${protocol}`);
      return new PassThrough();
    },
    disks: {
      async open(namespace, claim) {
        recorded.push(`open ${namespace}/${claim}`);
        return { header: { size: 0, format: 'raw', virtualSize: 0 }, chunks: async function* () {}, async close() {} };
      },
      async replace(namespace, claim) {
        recorded.push(`replace ${namespace}/${claim}`);
        return {
          async receive() {},
          readProgress: async () => ({ offset: 0, hash: createHash('sha256') }),
          async close() {},
        };
      },
    },
    host: {
      async call(verb, parameters) {
        recorded.push(`${verb} ${JSON.stringify(parameters)}`);
        return { status: HOST_CODES.done };
      },
    },
    logs: (namespace, pod, container) => void recorded.push(`logs ${namespace}/${pod}/${container}`),
  };
}

const calls: Record<string, (agent: EndpointAgent) => unknown> = {
  'find ns/db': (agent) => agent.find('ns', 'db'),
  'pause u': (agent) => agent.pause('u'),
  'freeze u 5': (agent) => agent.freeze('u', 5),
  'unfreeze u': (agent) => agent.unfreeze('u'),
  'readGuest u userlist': (agent) => agent.readGuest('u', 'userlist'),
  'resume u': (agent) => agent.resume('u'),
  'softReboot u': (agent) => agent.softReboot('u'),
  'reset u': (agent) => agent.reset('u'),
  'openConsole u': (agent) => agent.openConsole('u'),
  'openDisplay u': (agent) => agent.openDisplay('u'),
  'screenshot u': (agent) => agent.screenshot('u', { moveCursor: false }),
  'openPort u 22/tcp': (agent) => agent.openPort('u', { port: 22, protocol: 'tcp' }),
  'list {"vmList":["u"]}': (agent) =>
    agent.host?.call('list', { vmList: ['u'] }, { signal: new AbortController().signal }),
  'open ns/data': (agent) => agent.disks?.open('ns', 'data'),
  'replace ns/data': (agent) => agent.disks?.replace('ns', 'data'),
  'logs ns/pod/compute': (agent) => agent.logs('ns', 'pod', 'compute'),
};

for (const [name, call] of Object.entries(calls)) {
  test(`"${name}" is refused before the agent is attached, and forwarded afterwards`, async () => {
    const late = createLateAgent();
    await assert.rejects(async () => await call(late.agent), HypervisorError);
    const recorded: string[] = [];
    late.attach(recordingAgent(recorded));
    await call(late.agent);
    assert.deepEqual(recorded, [name]);
  });
}
