/** VMs for API servers of others. */
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';

export function aVirtualMachine(namespace: string, name: string): VirtualMachine {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { namespace, name },
    spec: {
      runStrategy: 'Always',
      template: {
        spec: {
          domain: {
            memory: { guest: '128Mi' },
            firmware: { kernelBoot: { container: { image: 'selfsame/guest' } } },
            devices: {},
          },
        },
      },
    },
  };
}

/** Waits for as long as the test may take. */
export const never = () => ({ signal: new AbortController().signal });
