//! Optional verbs that the backend does not have.

use fleetwright::{
    Effect, ErrorKind, ImageId, InstanceProvisioner, InstanceType, Operation, OptionalVerb,
    ProvisionError, Reboot, Result, RetryAdvice, SnapshotRequest, TagChange,
};

use super::Plain;
use crate::fake::id;

/// Returns the error of `verb`.
async fn refusal(plain: &dyn InstanceProvisioner, verb: OptionalVerb) -> ProvisionError {
    let id = &id("i-1");
    fn refused<T>(result: Result<T>) -> ProvisionError {
        match result {
            Ok(_) => panic!("it was done"),
            Err(error) => error,
        }
    }
    match verb {
        OptionalVerb::UpdateTags => refused(plain.update_tags(id, &TagChange::new()).await),
        OptionalVerb::RebootInstance => refused(plain.reboot_instance(id, Reboot::Hard).await),
        OptionalVerb::ResizeInstance => {
            let to = InstanceType::new("big").unwrap();
            refused(plain.resize_instance(id, &to).await)
        }
        OptionalVerb::ReimageInstance => {
            let image = ImageId::new("image-8").unwrap();
            refused(plain.reimage_instance(id, &image).await)
        }
        OptionalVerb::ConsoleOutput => refused(plain.console_output(id).await),
        OptionalVerb::ConsoleSession => refused(plain.console_session(id).await),
        OptionalVerb::SnapshotImage => {
            let request = SnapshotRequest::new("image-9").unwrap();
            refused(plain.snapshot_image(id, &request).await)
        }
        OptionalVerb::DeleteImage => {
            let image = ImageId::new("image-9").unwrap();
            refused(plain.delete_image(&image).await)
        }
    }
}

#[tokio::test]
async fn unsupported_calls_are_refused_by_name_without_effect() {
    let plain = Plain::new();
    for verb in OptionalVerb::ALL {
        let error = refusal(&plain, verb).await;
        assert_eq!(error.operation(), Operation::from(verb));
        assert_eq!(error.provider(), "plain");
        assert_eq!(
            (error.kind(), error.effect(), error.retry()),
            (ErrorKind::Unsupported, Effect::None, RetryAdvice::Never)
        );
    }
}
