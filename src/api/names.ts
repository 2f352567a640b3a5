/**
 * Names that our components, KubeVirt's users and its tools share: groups, labels, annotations, finalizers, conditions.
 */

export const KUBEVIRT_GROUP = 'kubevirt.io';
export const SUBRESOURCES_GROUP = 'subresources.kubevirt.io';
export const IDENTITY_GROUP = 'identity.selfsame.io';
export const NETWORK_GROUP = 'network.selfsame.io';
export const SNAPSHOT_GROUP = 'snapshot.kubevirt.io';

/** The namespace of our own components. */
export const SYSTEM_NAMESPACE = 'selfsame-system';
/** The one KubeVirt object, in SYSTEM_NAMESPACE. */
export const KUBEVIRT_NAME = 'kubevirt';

/** On launcher pods: `virt-launcher`. */
export const APP_LABEL = 'kubevirt.io';
export const LAUNCHER_APP = 'virt-launcher';
/** On launcher pods: the uid of their instance. */
export const CREATED_BY_LABEL = 'kubevirt.io/created-by';
/** On launcher pods: the name of their instance. An annotation, because names may be longer than label values. */
export const DOMAIN_ANNOTATION = 'kubevirt.io/domain';
/** On instances: the node that runs them. */
export const NODE_NAME_LABEL = 'kubevirt.io/nodeName';
/** On launcher pods and instances: the name of the VM. */
export const VM_NAME_LABEL = 'vm.kubevirt.io/name';
/** On nodes: `true` for each machine type that the node can run. */
export const MACHINE_TYPE_LABEL_PREFIX = 'machine-type.node.kubevirt.io/';
/** On launcher pods: the addresses of the guest's interfaces on the default network (api/network/pod-addresses.ts). */
export const POD_ADDRESSES_ANNOTATION = 'network.selfsame.io/addresses';
/**
 * On VMs, their templates and instances: the addresses that the user wants, as in OVN-Kubernetes: a JSON object with a
 * list of addresses for each network of the VM.
 */
export const REQUESTED_ADDRESSES_ANNOTATION = 'network.kubevirt.io/addresses';
/** On nodes that can run VMs: `true`. */
export const SCHEDULABLE_LABEL = 'kubevirt.io/schedulable';
/** On nodes of ours: the address of their host for the tunnel between hosts. Absent on nodes of a single machine. */
export const TUNNEL_ADDRESS_ANNOTATION = 'selfsame.io/tunnel-address';
/** On nodes with an agent of ours: `qemu`, or `fake` for simulated guests. */
export const HYPERVISOR_LABEL = 'selfsame.io/hypervisor';

/** On our nodes in an existing cluster: keeps pods away that are not ours. */
export const NODE_TAINT = { key: 'selfsame.io/vms-only', value: 'true', effect: 'NoSchedule' } as const;
export const NODE_TOLERATION = { key: NODE_TAINT.key, operator: 'Exists', effect: NODE_TAINT.effect } as const;

/** On VMs, and on their instances. */
export const VM_FINALIZER = 'kubevirt.io/virtualMachineControllerFinalize';
/** On instances: removed when the guest has ended. */
export const VMI_FINALIZER = 'kubevirt.io/foregroundDeleteVirtualMachine';

/** The images of launcher pods, of Job pods that run this program, and of the built-in guest (kernelBoot). */
export const LAUNCHER_IMAGE = 'selfsame/virt-launcher';
export const PROGRAM_IMAGE = 'selfsame/selfsame';
export const GUEST_IMAGE = 'selfsame/guest';
/** The container in which the guest runs, and the one whose log is the guest's serial console. */
export const COMPUTE_CONTAINER = 'compute';
export const CONSOLE_CONTAINER = 'guest-console-log';

export const LOCAL_PROVISIONER = 'selfsame.io/local';
/**
 * The CSI driver in its PersistentVolumes. Differs from the provisioner, because driver names may not contain a slash.
 */
export const LOCAL_DRIVER = 'local.selfsame.io';
/**
 * On volumes that are retained for a protected VM: their own reclaim policy. Only controllers/protection writes it; on
 * volumes of protected VMs a policy refuses all other users (operator/objects/protected-volumes.ts).
 */
export const RECLAIM_POLICY_ANNOTATION = 'selfsame.io/reclaim-policy';
/** On Nodes: the largest volumes that fit on them (api/storage/storage-size.ts). */
export const STORAGE_BYTES_ANNOTATION = 'selfsame.io/storage-bytes';
/** On our PersistentVolumes: the node that has the data; absent if all nodes can access it. */
export const VOLUME_NODE_ANNOTATION = 'selfsame.io/volume-node';
/** On our PersistentVolumes: removed when the data is deleted. */
export const VOLUME_DATA_FINALIZER = 'selfsame.io/volume-data';
/** On our PersistentVolumes that are created from a snapshot: removed when the data has been copied into them. */
export const VOLUME_COPY_FINALIZER = 'selfsame.io/volume-copy';
/** On such PersistentVolumes: the node that copies the data. */
export const COPY_NODE_ANNOTATION = 'selfsame.io/volume-copy-node';

/** On our VolumeSnapshotContents: removed when the data is deleted. */
export const SNAPSHOT_DATA_FINALIZER = 'selfsame.io/snapshot-data';
/** On VolumeSnapshots and their contents: the snapshot set, whose disks are copied as of the same point in time. */
export const SNAPSHOT_SET_ANNOTATION = 'selfsame.io/snapshot-set';
/** Number of disks in the set. */
export const SNAPSHOT_SET_SIZE_ANNOTATION = 'selfsame.io/snapshot-set-size';
/** The uid of the instance whose guest has the disk open; absent if no guest has. */
export const SNAPSHOT_INSTANCE_ANNOTATION = 'selfsame.io/snapshot-instance';
/** On our VolumeSnapshotContents: the node that makes the copy. */
export const SNAPSHOT_NODE_ANNOTATION = 'selfsame.io/snapshot-node';

export const VM_SNAPSHOT_FINALIZER = 'snapshot.kubevirt.io/vmsnapshot-protection';
export const VM_SNAPSHOT_CONTENT_FINALIZER = 'snapshot.kubevirt.io/vmsnapshotcontent-protection';
export const VM_RESTORE_FINALIZER = 'snapshot.kubevirt.io/vmrestore-protection';
/** On VMs: `<name>-<uid>` of the last restore. */
export const LAST_RESTORE_ANNOTATION = 'restore.kubevirt.io/lastRestoreUID';

/** On instances: names of volumes that were plugged in for this run only, as a JSON list. */
export const EPHEMERAL_HOTPLUG_ANNOTATION = 'kubevirt.io/ephemeral-hotplug-volumes';
/** On imported VMs: machine type and device rows, as JSON (ImportedDevices); the identity record starts with them. */
export const IMPORTED_DEVICES_ANNOTATION = 'identity.selfsame.io/imported-devices';

/** On identity records: removed by controllers/vm once the VM is gone, so that the record outlives the VM. */
export const RECORD_FINALIZER = 'selfsame.io/identity-record';
/** On VMs whose record is lost: the uid of that record. It allows the next start to choose new device addresses. */
export const NEW_LAYOUT_ANNOTATION = 'identity.selfsame.io/accept-new-layout';
/** On VMs that have been started: namespace, name and uid (api/virtual-machine-identity/restored-vm.ts). */
export const STARTED_ANNOTATION = 'identity.selfsame.io/started';

/** On migrations: removed when it is settled which node has the guest and its state. */
export const MIGRATION_FINALIZER = 'kubevirt.io/migrationJobFinalize';
/** On the launcher pods of source and target until the migration is settled: their status shows which has the guest. */
export const MIGRATION_POD_FINALIZER = 'selfsame.io/migration';
/** On migrations: the name of their instance, if it is short enough for a label value. */
export const VMI_NAME_LABEL = 'kubevirt.io/vmi-name';
/** On launcher pods of a migration target: the uid of the migration. Never removed. */
export const MIGRATION_UID_LABEL = 'kubevirt.io/migrationJobUID';
/** On state claims that were created for a migration: its name. */
export const MIGRATION_NAME_LABEL = 'kubevirt.io/migrationName';
/** On migrations that evacuate a node: the name of the node. */
export const EVACUATION_ANNOTATION = 'kubevirt.io/evacuationMigration';
/** Condition of the launcher pods of source and target: True once the guest belongs to the target for good. */
export const MIGRATION_COMMITTED_CONDITION = 'selfsame.io/MigrationCommitted';
/** The reason of a launcher pod whose guest was migrated away, and of a target pod whose migration failed. */
export const MIGRATED_REASON = 'Migrated';
/** The reason of a pod whose guest fails its readiness probe, as in the kubelet. */
export const UNREADY_REASON = 'ContainersNotReady';
export const MIGRATION_ABORTED_REASON = 'MigrationAborted';
/** On our PersistentVolumes during a migration: the node that may have a second copy. */
export const INCOMING_NODE_ANNOTATION = 'selfsame.io/incoming-node';
/** Together with it: the uid of the migration. The spec of the instance may change meanwhile. */
export const INCOMING_MIGRATION_ANNOTATION = 'selfsame.io/incoming-migration';
/** On our PersistentVolumes: a node that still has a leftover copy. The node removes the copy, then this annotation. */
export const LEFTOVER_NODE_ANNOTATION = 'selfsame.io/leftover-node';

/** Condition of migrations: no node can report where the guest is; an administrator must set the annotation. */
export const MANUAL_RECOVERY_CONDITION = 'ManualRecoveryRequired';
/** `source` or `target` (migration-recovery.ts). */
export const RECOVERY_ANNOTATION = 'selfsame.io/recovery';

/** The WebSocket subprotocol of KubeVirt's clients for console, VNC and port-forward. */
export const PLAIN_STREAM_PROTOCOL = 'plain.kubevirt.io';
/** Annotation of claims: the name of the restore that created them, as in KubeVirt. */
export const RESTORE_NAME_ANNOTATION = 'restore.kubevirt.io/name';
/**
 * On claims that a restore has created, until it hands them over: the uid of the restore. Only the restore controller can
 * write it (operator/objects/protected-claims.ts), so that a restore recognizes its own claims.
 */
export const RESTORED_BY_ANNOTATION = 'selfsame.io/restored-by';
