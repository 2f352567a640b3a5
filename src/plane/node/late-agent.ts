/**
 * A placeholder agent for the endpoint, which must listen before the agent starts: the agent reports its port in the
 * Node.
 */
import type { EndpointAgent } from '#node/endpoint/endpoint-agent.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';

export function createLateAgent(): { readonly agent: EndpointAgent; attach(agent: EndpointAgent): void } {
  let real: EndpointAgent | undefined;
  const now = (): EndpointAgent => {
    if (real === undefined) throw new HypervisorError('Cannot reach the guest: the agent of the node is starting');
    return real;
  };
  return {
    attach(agent) {
      real = agent;
    },
    agent: {
      find: (namespace, name) => now().find(namespace, name),
      pause: async (id) => await now().pause(id),
      resume: async (id) => await now().resume(id),
      softReboot: async (id) => await now().softReboot(id),
      reset: async (id) => await now().reset(id),
      freeze: async (id, seconds) => await now().freeze(id, seconds),
      unfreeze: async (id) => await now().unfreeze(id),
      readGuest: async (id, what) => await now().readGuest(id, what),
      openConsole: async (id) => await now().openConsole(id),
      openDisplay: async (id) => await now().openDisplay(id),
      screenshot: async (id, options) => await now().screenshot(id, options),
      openPort: async (id, port) => await now().openPort(id, port),
      logs: (namespace, pod, container) => now().logs(namespace, pod, container),
      disks: {
        open: async (namespace, claim) => await disksOf(now()).open(namespace, claim),
        replace: async (namespace, claim) => await disksOf(now()).replace(namespace, claim),
      },
      // Before the agent has started, migrations are refused; the source retries.
      get migrations() {
        return real?.migrations;
      },
      host: {
        async call(verb, parameters, options) {
          const { host } = now();
          if (host === undefined) throw new HypervisorError('Cannot reach guests: this node has no host API');
          return await host.call(verb, parameters, options);
        },
      },
    },
  };
}

function disksOf({ disks }: EndpointAgent): NonNullable<EndpointAgent['disks']> {
  if (disks === undefined) throw new HypervisorError('Cannot reach disks: this node simulates its disks');
  return disks;
}
