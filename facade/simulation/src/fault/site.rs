//! The steps of a run: where something can go wrong.

macro_rules! sites {
    ($($(#[$docs:meta])* $name:ident,)*) => {
        /// A step: a commit or a read of the store, by whom and what for; what a watch hands out; a call of the cloud.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Site {
            $($(#[$docs])* $name,)*
        }

        impl Site {
            /// Every step.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
        }
    };
}

sites! {
    /// A tenant's instance is made, and paid for.
    Create,
    /// A tenant's wish is written.
    Update,
    /// A tenant's wish is written with another price.
    Recharge,
    /// A tenant's instance is marked: it is to go.
    Mark,
    /// That something was shown of a machine is written.
    Access,
    /// An image is asked for.
    ImageAsk,
    /// How far an image is, is written.
    ImageNote,
    /// An operator loads another catalog.
    Reload,
    /// A network is asked to go.
    Condemn,
    /// A network is gone.
    NetworkGone,
    /// An operator asks something of a server, past its owner.
    Order,
    /// The controller of instances makes a server.
    MakeServer,
    /// It tells a server what is asked of the instance.
    PassOn,
    /// It asks a server to go.
    EndServer,
    /// It writes what is known of an instance.
    Status,
    /// It lets an instance be gone, with what pays for it.
    ForgetInstance,
    /// An instance is marked because its network goes.
    MarkByNetwork,
    /// The region's controller writes down a new launch.
    Begin,
    /// That a launch is sent again.
    Resend,
    /// The machine of a launch.
    Record,
    /// That a machine is to go.
    Ending,
    /// That the cloud accepted that.
    Ended,
    /// That a change in place is about to be sent.
    Attempt,
    /// A change in place.
    Change,
    /// What failed, what is settled, or that all is done.
    Note,
    /// It deletes a server's record, and its key.
    Forget,
    /// The monitor writes what it saw.
    Observe,
    /// The monitor writes the pulse.
    Beat,
    /// The service reads.
    ReadService,
    /// The controller of instances reads.
    ReadInstances,
    /// The keeper of networks reads.
    ReadNetworks,
    /// The region's controller, its monitor or its maker of images reads.
    ReadRegion,
    /// The controller of instances is shown a change.
    WatchInstances,
    /// The keeper of networks is.
    WatchNetworks,
    /// The region's controller, its maker of images or the catalog is.
    WatchRegion,
    /// A machine is launched.
    Launch,
    /// A launch is looked for.
    FindLaunch,
    /// A machine is destroyed.
    Terminate,
    /// A machine is started.
    Start,
    /// A machine is stopped.
    Stop,
    /// A machine is rebooted.
    Reboot,
    /// A machine gets another size.
    Resize,
    /// A machine gets another image.
    Reimage,
    /// A machine's tags are changed.
    Retag,
    /// All machines are listed.
    List,
    /// A machine is asked for by its name.
    Describe,
    /// The monitor destroys an orphan.
    Sweep,
    /// An image is made of a machine.
    Snapshot,
    /// A machine's console is read.
    Console,
}
