//! Console output, console sessions and snapshots.

use fleetwright::{
    Effect, ErrorKind, ImageId, InstanceProvisioner as _, RetryAdvice, SnapshotRequest, Tags,
};

use crate::support::{brisk, builder, open, pass, plain, running, seconds};

#[tokio::test(start_paused = true)]
async fn console_output_has_boots_and_capture_time() {
    let (_, provisioner) = open(brisk());
    let id = provisioner.launch_instance(&plain()).await.unwrap().id;
    assert_eq!(provisioner.console_output(&id).await.unwrap().text, "");
    pass(seconds(60)).await;
    let output = provisioner.console_output(&id).await.unwrap();
    assert_eq!(output.text, "boot 1 from image-1");
    let captured = output.captured_at.unwrap().to_rfc3339();
    assert_eq!(captured, "2026-01-01T00:01:00+00:00");
    let image = ImageId::new("image-2").unwrap();
    provisioner.reimage_instance(&id, &image).await.unwrap();
    pass(seconds(1)).await;
    let output = provisioner.console_output(&id).await.unwrap();
    assert_eq!(output.text, "boot 1 from image-1\nboot 2 from image-2");
}

#[tokio::test(start_paused = true)]
async fn console_session_is_unique_and_expires() {
    let (_, provisioner) = open(brisk());
    let id = running(&provisioner).await.id;
    pass(seconds(59)).await;
    let one = provisioner.console_session(&id).await.unwrap();
    let two = provisioner.console_session(&id).await.unwrap();
    assert!(
        one.url.starts_with(&format!("memory://console/{id}?key=")),
        "{}",
        one.url
    );
    assert_ne!(one.url, two.url);
    let elapsed = one.expires_at.unwrap()
        - provisioner
            .console_output(&id)
            .await
            .unwrap()
            .captured_at
            .unwrap();
    assert_eq!(elapsed.to_std().unwrap(), seconds(600));
}

#[tokio::test(start_paused = true)]
async fn snapshot_creates_an_image_that_can_be_launched() {
    let base = ImageId::new("image-1").unwrap();
    let (cloud, provisioner) = open(brisk().offer_image(base));
    let id = running(&provisioner).await.id;
    let mut request = SnapshotRequest::new("golden").unwrap();
    request.tags = Tags::new().with("kind", "golden").unwrap();
    let image = provisioner.snapshot_image(&id, &request).await.unwrap();
    assert_eq!(
        provisioner.snapshot_image(&id, &request).await.unwrap(),
        image,
        "a repeated snapshot returns the same image"
    );
    let images = cloud.oracle().images();
    assert_eq!(images.len(), 1);
    assert_eq!((&images[0].id, images[0].name.as_str()), (&image, "golden"));
    assert_eq!((&images[0].source, &images[0].tags), (&id, &request.tags));
    let mut config = plain();
    config.image = image.clone();
    let copy = provisioner.launch_instance(&config).await.unwrap();
    assert_eq!(copy.image, Some(image.clone()));
    pass(seconds(1)).await;
    provisioner.reimage_instance(&id, &image).await.unwrap();
    // A snapshot of another instance cannot have the same name.
    let error = provisioner
        .snapshot_image(&copy.id, &request)
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.effect(), error.retry()),
        (ErrorKind::Conflict, Effect::None, RetryAdvice::Never)
    );
    assert!(
        error
            .message()
            .contains("the image name golden belongs to a snapshot of another instance"),
        "{error}"
    );
    let other = SnapshotRequest::new("silver").unwrap();
    let silver = provisioner.snapshot_image(&copy.id, &other).await.unwrap();
    assert_ne!(silver, image);
    let names: Vec<_> = cloud
        .oracle()
        .images()
        .into_iter()
        .map(|i| i.name)
        .collect();
    assert_eq!(names, ["golden", "silver"]);
}

#[tokio::test(start_paused = true)]
async fn image_outlives_its_instance() {
    let (cloud, provisioner) = open(builder().terminated_visible(seconds(0)));
    let id = running(&provisioner).await.id;
    let request = SnapshotRequest::new("kept").unwrap();
    let image = provisioner.snapshot_image(&id, &request).await.unwrap();
    provisioner.terminate_instance(&id).await.unwrap();
    pass(seconds(10)).await;
    assert!(cloud.oracle().instance(&id).is_none());
    assert_eq!(cloud.oracle().images()[0].id, image);
}
