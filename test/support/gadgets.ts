/** A custom kind for tests, with defaults, an enum, bounds, columns and a status subresource. */
import type { Loose, TestApi } from '#test/support/test-api.ts';

export const GADGETS = '/apis/golden.local/v1/namespaces/golden/gadgets';
const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

export function gadgetCrd(): Loose {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'gadgets.golden.local' },
    spec: {
      group: 'golden.local',
      scope: 'Namespaced',
      names: { plural: 'gadgets', singular: 'gadget', kind: 'Gadget', shortNames: ['gd'], categories: ['all'] },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: [
            { name: 'Size', type: 'integer', jsonPath: '.spec.size' },
            { name: 'Color', type: 'string', jsonPath: '.spec.color' },
            { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
          ],
          selectableFields: [{ jsonPath: '.spec.color' }],
          schema: {
            openAPIV3Schema: {
              type: 'object',
              required: ['spec'],
              properties: {
                spec: {
                  type: 'object',
                  required: ['size'],
                  properties: {
                    size: { type: 'integer', minimum: 1, maximum: 10 },
                    color: { type: 'string', enum: ['red', 'green', 'blue'] },
                    mode: { type: 'string', default: 'auto' },
                    note: { type: 'string' },
                  },
                },
                status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
              },
            },
          },
        },
      ],
    },
  };
}

export function aGadget(name: string, spec: Loose = { size: 3, color: 'red' }, metadata: Loose = {}): Loose {
  return { apiVersion: 'golden.local/v1', kind: 'Gadget', metadata: { name, ...metadata }, spec };
}

/** Creates the namespace `golden` and the kind, and waits until the kind is served. */
export async function installGadgets(api: TestApi, crd: Loose = gadgetCrd()): Promise<void> {
  await api.ok('POST', '/api/v1/namespaces', {
    body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'golden' } },
  });
  await installCrd(api, crd);
  // Writes of the controllers must not come between the writes that a test counts.
  await api.settle();
}

export async function installCrd(api: TestApi, crd: Loose): Promise<void> {
  const watch = await api.watch(`${CRDS}?watch=1&fieldSelector=metadata.name=${crd.metadata.name}`);
  await api.ok('POST', CRDS, { body: crd });
  for (let count = 1; ; count++) {
    const events = await watch.awaitEvents(count);
    const conditions: Loose[] = events[count - 1]!.object.status?.conditions ?? [];
    if (conditions.some(({ type, status }) => type === 'Established' && status === 'True')) break;
  }
  watch.stop();
}
