/** The schemas of security contexts of pods and containers. */
import { apiType, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { bool, int64, list, oneOf, str } from '#kube/schema-dsl.ts';

const capabilities = apiType('core.v1.Capabilities', 'POSIX capabilities to add to and drop from a container.', {
  add: optional(1, list(str(), { atomic: true }), 'Capabilities to add.'),
  drop: optional(2, list(str(), { atomic: true }), 'Capabilities to drop.'),
});

const seLinuxOptions = apiType('core.v1.SELinuxOptions', 'Labels of an SELinux context.', {
  user: optional(1, str(), 'User label.'),
  role: optional(2, str(), 'Role label.'),
  type: optional(3, str(), 'Type label.'),
  level: optional(4, str(), 'Level label.'),
});

const profileType = required(
  1,
  oneOf(['Localhost', 'RuntimeDefault', 'Unconfined']),
  'Type of the profile: RuntimeDefault, Localhost or Unconfined.',
);

const seccompProfile = apiType('core.v1.SeccompProfile', 'A seccomp profile.', {
  type: profileType,
  localhostProfile: pointer(2, str(), 'Path of a profile file on the node. Requires type Localhost.'),
});

const appArmorProfile = apiType('core.v1.AppArmorProfile', 'An AppArmor profile.', {
  type: profileType,
  localhostProfile: pointer(2, str(), 'Name of a profile that is loaded on the node. Requires type Localhost.'),
});

const windowsSecurityContextOptions = apiType(
  'core.v1.WindowsSecurityContextOptions',
  'Security settings for Windows containers.',
  {
    gmsaCredentialSpecName: pointer(1, str(), 'Name of the GMSA credential spec.'),
    gmsaCredentialSpec: pointer(2, str(), 'Contents of the GMSA credential spec.'),
    runAsUserName: pointer(3, str(), 'User name that runs the entrypoint.'),
    hostProcess: pointer(4, bool(), 'Whether to run the container as a host process container.'),
  },
);

export const securityContext = apiType(
  'core.v1.SecurityContext',
  'Security settings of a container. They take precedence over those of the pod.',
  {
    capabilities: pointer(1, capabilities, 'Capabilities to add or drop.'),
    privileged: pointer(
      2,
      bool(),
      'Whether to run the container in privileged mode, which is equivalent to root on the host.',
    ),
    seLinuxOptions: pointer(3, seLinuxOptions, 'SELinux context of the container.'),
    windowsOptions: pointer(10, windowsSecurityContextOptions, 'Settings for Windows containers.'),
    runAsUser: pointer(4, int64(), 'UID of the container process.'),
    runAsGroup: pointer(8, int64(), 'GID of the container process.'),
    runAsNonRoot: pointer(5, bool(), 'Whether the container must run as a non-root user.'),
    readOnlyRootFilesystem: pointer(6, bool(), 'Whether the root file system is read-only.'),
    allowPrivilegeEscalation: pointer(7, bool(), 'Whether a process can gain more privileges than its parent.'),
    procMount: pointer(9, oneOf(['Default', 'Unmasked']), 'Type of the proc mount: Default or Unmasked.'),
    seccompProfile: pointer(11, seccompProfile, 'Seccomp profile of the container.'),
    appArmorProfile: pointer(12, appArmorProfile, 'AppArmor profile of the container.'),
  },
);

const sysctl = apiType('core.v1.Sysctl', 'A kernel parameter.', {
  name: required(1, str(), 'Name of the parameter.'),
  value: required(2, str(), 'Value of the parameter.'),
});

export const podSecurityContext = apiType(
  'core.v1.PodSecurityContext',
  'Security settings of a pod and defaults for its containers.',
  {
    seLinuxOptions: pointer(1, seLinuxOptions, 'SELinux context of the containers.'),
    windowsOptions: pointer(8, windowsSecurityContextOptions, 'Settings for Windows containers.'),
    runAsUser: pointer(2, int64(), 'UID of the container processes.'),
    runAsGroup: pointer(6, int64(), 'GID of the container processes.'),
    runAsNonRoot: pointer(3, bool(), 'Whether the containers must run as a non-root user.'),
    supplementalGroups: optional(4, list(int64(), { atomic: true }), 'Supplemental GIDs of the container processes.'),
    supplementalGroupsPolicy: pointer(
      12,
      oneOf(['Merge', 'Strict']),
      "Whether groups of the image's user are added: Merge or Strict.",
    ),
    fsGroup: pointer(5, int64(), 'Supplemental GID that owns the files of volumes.'),
    sysctls: optional(7, list(sysctl, { atomic: true }), 'Namespaced sysctls of the pod.'),
    fsGroupChangePolicy: pointer(
      9,
      oneOf(['Always', 'OnRootMismatch']),
      'When ownership and permissions of a volume change: OnRootMismatch or Always.',
    ),
    seccompProfile: pointer(10, seccompProfile, 'Seccomp profile of the containers.'),
    appArmorProfile: pointer(11, appArmorProfile, 'AppArmor profile of the containers.'),
    seLinuxChangePolicy: pointer(
      13,
      oneOf(['MountOption', 'Recursive']),
      "How the SELinux label is applied to the pod's volumes: MountOption or Recursive.",
    ),
  },
);
