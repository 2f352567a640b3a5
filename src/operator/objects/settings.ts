/** The KubeVirt object: created empty, and owned by the administrator afterwards. */
import { KUBEVIRTS } from '#api/kubevirt/kind.ts';
import { KUBEVIRT_NAME, SYSTEM_NAMESPACE } from '#api/names.ts';
import { desiredObject, type DesiredObject } from '#operator/desired.ts';

export const settingsObject: DesiredObject = desiredObject(
  KUBEVIRTS,
  { namespace: SYSTEM_NAMESPACE, name: KUBEVIRT_NAME },
  { spec: { configuration: {} } },
  { once: true },
);
