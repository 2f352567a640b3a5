/** VMs for existing clusters. */
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

/** Options whose signal never aborts: the wait ends with the test at the latest. */
export const optionsWithoutAbort = () => ({ signal: new AbortController().signal });
