//! The points at which a fault can be injected.

macro_rules! points {
    ($($(#[$docs:meta])* $name:ident,)*) => {
        /// A step of a run: a commit or a read of the store by one part, a watch event, or a cloud
        /// call.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FaultPoint {
            $($(#[$docs])* $name,)*
        }

        impl FaultPoint {
            /// Every point.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
        }
    };
}

points! {
    /// The service creates an instance and charges it.
    Create,
    /// The service writes a changed desired state.
    Update,
    /// The service writes a changed desired state and charges the difference.
    Recharge,
    /// The service marks an instance for deletion.
    MarkDeleted,
    /// The service records that a key or a console was read.
    RecordAccess,
    /// The service requests an image of a machine.
    RequestImage,
    /// The snapshot controller writes the progress of an image, or a tenant marks it for deletion.
    UpdateImage,
    /// The snapshot controller removes an image and its allocation.
    RemoveImage,
    /// An operator loads another catalog.
    LoadCatalog,
    /// A network is marked for deletion.
    DeleteNetwork,
    /// A network is removed.
    RemoveNetwork,
    /// An operator writes a server directly, bypassing its owner.
    OperatorWrite,
    /// The instance controller creates a server.
    CreateServer,
    /// The instance controller applies the desired state to a server.
    ApplyToServer,
    /// The instance controller deletes a server.
    DeleteServer,
    /// The instance controller writes an instance's status.
    WriteStatus,
    /// The instance controller removes an instance and its allocation.
    RemoveInstance,
    /// The network controller marks an instance for deletion.
    MarkByNetwork,
    /// The server controller stores a new launch.
    BeginLaunch,
    /// The server controller stores that it sends a launch again.
    ResendLaunch,
    /// The server controller stores the machine of a launch.
    RecordMachine,
    /// The server controller stores that it will terminate a machine.
    BeginTermination,
    /// The server controller stores that the cloud accepted a termination.
    TerminationAccepted,
    /// The server controller stores that it will change a machine in place.
    BeginChange,
    /// The server controller stores a change in place.
    RecordChange,
    /// The server controller stores a failure, a settled launch, or an applied generation.
    RecordResult,
    /// The server controller removes a server and its key.
    RemoveServer,
    /// The monitor writes an observation.
    WriteObservation,
    /// The monitor writes its scan record.
    WriteScan,
    /// The service reads.
    ReadService,
    /// The instance controller reads.
    ReadInstances,
    /// The network controller reads.
    ReadNetworks,
    /// The server controller, the monitor or the snapshot controller reads.
    ReadRegion,
    /// The catalog reads, when a process starts and when it follows the store.
    ReadCatalog,
    /// A process reads its mapping file.
    ReadMapping,
    /// An operator's call reads.
    ReadOperator,
    /// The instance controller gets a watch event.
    WatchInstances,
    /// The network controller gets a watch event.
    WatchNetworks,
    /// The server controller or the snapshot controller gets a watch event.
    WatchRegion,
    /// The catalog gets a watch event.
    WatchCatalog,
    /// A watch is opened.
    OpenWatch,
    /// A launch.
    Launch,
    /// A lookup of a launch by its token.
    FindLaunch,
    /// A termination.
    Terminate,
    /// A start.
    Start,
    /// A stop.
    Stop,
    /// A reboot.
    Reboot,
    /// A resize.
    Resize,
    /// A reimage.
    Reimage,
    /// A change of tags.
    Retag,
    /// A list of all machines.
    List,
    /// A description of machines by id.
    Describe,
    /// A termination of an orphan by the monitor.
    TerminateOrphan,
    /// A snapshot of a machine.
    Snapshot,
    /// A deletion of an image.
    DeleteImage,
    /// A read of a machine's console.
    Console,
}
