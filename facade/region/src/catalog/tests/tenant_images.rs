//! Tenants' images of their servers.

use std::collections::BTreeSet;

use chrono::DateTime;
use fleetwright_identity::{Level, Permission, Resource, Verb};

use super::*;
use crate::{ids::RegionId, name::Name, testing::ContendedStore};

impl CatalogService {
    /// Adds an image that nobody is charged for.
    pub(crate) async fn add_uncharged(
        &self,
        principal: &Principal,
        new: &NewImage,
    ) -> Result<Image, ImageError> {
        let (requester, details) = (principal.actor(), ImageDetails::default());
        self.add_image_with_details((principal, requester), new, details, None)
            .await
    }
}

fn image_id(id: &str) -> ImageId {
    ImageId::new(id).unwrap()
}

fn native() -> fleetwright::ImageId {
    fleetwright::ImageId::new("ami-7").unwrap()
}

fn administrator() -> Principal {
    user_with_role(
        "organization-administrator",
        Scope::Organization(organization(1)),
    )
}

/// The principal of the controller that creates images.
fn image_controller() -> Principal {
    crate::machine::own().unwrap()
}

fn owner() -> ImageOwner {
    ImageOwner {
        organization: organization(1),
        project: project(1),
    }
}

fn new_image() -> NewImage {
    NewImage {
        name: Name::new("golden").unwrap(),
        owner: owner(),
        requested_at: DateTime::UNIX_EPOCH,
        region: RegionId::new("north").unwrap(),
        source: image_id("ubuntu-24.04-arm"),
    }
}

async fn loaded() -> CatalogService {
    let service = open(&store()).await;
    service.load(EXAMPLE).await.unwrap();
    service
}

/// A service with the image of [`new_image`].
async fn with_image() -> (CatalogService, Image) {
    let service = loaded().await;
    let created = service.add_uncharged(&administrator(), &new_image()).await;
    (service, created.unwrap())
}

#[tokio::test]
async fn image_progresses_step_by_step_and_a_repeated_request_creates_no_other() {
    let (service, created) = with_image().await;
    assert_eq!(
        (created.state, created.architecture),
        (ImageState::Pending, Architecture::Aarch64)
    );
    assert_eq!(
        created.visibility,
        Visibility::Project(organization(1), project(1))
    );
    assert_eq!(
        service
            .add_uncharged(&administrator(), &new_image())
            .await
            .unwrap(),
        created
    );
    assert!(created.check_offered().is_err());

    let id = new_image().id().unwrap();
    let early = service
        .set_progress(&image_controller(), &id, &SnapshotProgress::Ready)
        .await
        .unwrap_err();
    assert_eq!(
        early.to_string(),
        format!("image {id} is pending: it cannot become ready")
    );
    let begun = SnapshotProgress::Started(native());
    for _ in 0..2 {
        let created = service
            .set_progress(&image_controller(), &id, &begun)
            .await
            .unwrap();
        assert_eq!(created.state, ImageState::Creating);
    }
    let other = SnapshotProgress::Started(fleetwright::ImageId::new("ami-8").unwrap());
    assert!(
        service
            .set_progress(&image_controller(), &id, &other)
            .await
            .is_err(),
        "it is not created twice"
    );
    for _ in 0..2 {
        let created = service
            .set_progress(&image_controller(), &id, &SnapshotProgress::Ready)
            .await
            .unwrap();
        assert_eq!(created.check_offered(), Ok(()));
    }
    assert!(
        service
            .set_progress(&image_controller(), &id, &begun)
            .await
            .is_err()
    );
    assert!(
        service
            .set_progress(&image_controller(), &id, &SnapshotProgress::Failed)
            .await
            .is_err()
    );
    let again = service
        .add_uncharged(&administrator(), &new_image())
        .await
        .unwrap();
    assert_eq!(again.state, ImageState::Ready, "the existing image");

    let mut other = new_image();
    other.region = RegionId::new("south").unwrap();
    let taken = service
        .add_uncharged(&administrator(), &other)
        .await
        .unwrap_err();
    assert_eq!(
        taken.to_string(),
        "the project has another image golden: choose another name, or delete that image first"
    );
    other.source = image_id("never-was");
    let none = service
        .add_uncharged(&administrator(), &other)
        .await
        .unwrap_err();
    assert_eq!(none.to_string(), "there is no image never-was");
}

#[tokio::test]
async fn no_file_changes_an_image_of_a_tenant() {
    let (service, created) = with_image().await;
    assert_eq!(service.load(EXAMPLE).await.unwrap(), []);
    service.load(&without("ubuntu-24.04-arm")).await.unwrap();
    assert_eq!(service.image(&administrator(), &created.id), Some(created));
    let id = new_image().id().unwrap();
    let same_id = EXAMPLE.replace("\"acme-golden-7\"", &format!("\"{id}\""));
    let error = service.load(&same_id).await.unwrap_err();
    let problem = format!("id of image {id}: a tenant's image has this id: expected another id");
    assert!(error.to_string().contains(&problem), "{error}");
    // A retired source is allowed too, because its server still exists.
    let mut next = new_image();
    next.name = Name::new("silver").unwrap();
    assert!(service.add_uncharged(&administrator(), &next).await.is_ok());
}

#[tokio::test]
async fn tenant_can_retire_its_image_but_not_one_of_the_file() {
    let (service, Image { id, .. }) = with_image().await;
    for _ in 0..2 {
        let retired = service.retire_image(&administrator(), &id).await;
        assert!(retired.unwrap().retired);
    }
    let listed = service.images(&administrator()).unwrap();
    assert!(listed.iter().all(|image| image.id != id));
    assert!(service.image(&administrator(), &id).unwrap().retired);
    let platform = user_with_role("platform-administrator", Scope::Global);
    let of_file = service
        .retire_image(&platform, &image_id("ubuntu-24.04"))
        .await
        .unwrap_err();
    assert_eq!(
        of_file.to_string(),
        "image ubuntu-24.04 is in the catalog file: change it there"
    );
}

#[tokio::test]
async fn image_is_visible_to_its_project_and_changed_by_permission() {
    let (service, Image { id, .. }) = with_image().await;
    let stranger = user_with_role(
        "organization-administrator",
        Scope::Organization(organization(2)),
    );
    let member = user_with_role(
        "project-reader",
        Scope::Project(organization(1), project(1)),
    );
    let neighbour = user_with_role("project-user", Scope::Project(organization(1), project(2)));
    assert!(service.image(&member, &id).is_some());
    for outsider in [&stranger, &neighbour] {
        assert!(service.image(outsider, &id).is_none());
        let listed = service.images(outsider).unwrap();
        assert!(listed.iter().all(|image| image.id != id));
        let error = service.share_image(outsider, &id).await.unwrap_err();
        assert_eq!(error.to_string(), format!("there is no image {id}"));
    }
    let refused = service.retire_image(&member, &id).await.unwrap_err();
    assert!(matches!(refused, ImageError::Refused(_)), "{refused}");
    for hidden in [&id, &image_id("never-was")] {
        let error = service.retire_image(&stranger, hidden).await.unwrap_err();
        assert_eq!(error.to_string(), format!("there is no image {hidden}"));
    }
    let refused = service
        .add_uncharged(&stranger, &new_image())
        .await
        .unwrap_err();
    assert!(matches!(refused, ImageError::Refused(_)), "{refused}");
    // A tenant does not learn the source of another tenant's image.
    let mut theirs = new_image();
    theirs.owner.organization = organization(2);
    theirs.source = id.clone();
    let error = service.add_uncharged(&stranger, &theirs).await.unwrap_err();
    assert_eq!(error.to_string(), format!("there is no image {id}"));
}

#[tokio::test]
async fn concurrent_change_of_an_image_is_read_again() {
    let contended_store = Arc::new(ContendedStore::new(store()));
    let (service, _) = CatalogService::open(contended_store.clone()).await.unwrap();
    service.load(EXAMPLE).await.unwrap();
    let created = service
        .add_uncharged(&administrator(), &new_image())
        .await
        .unwrap();
    let touch = |state| {
        let mut image = created.clone();
        image.state = state;
        let id = RecordId::new("image", image.id.as_str()).unwrap();
        Transaction::new().put(id, serde_json::to_value(image).unwrap())
    };
    contended_store.before_next_commit(touch(ImageState::Failed));
    let begun = SnapshotProgress::Started(native());
    let late = service
        .set_progress(&image_controller(), &created.id, &begun)
        .await
        .unwrap_err();
    assert_eq!(
        late.to_string(),
        format!("image {} is failed: it cannot become creating", created.id)
    );
    for _ in 0..9 {
        contended_store.before_next_commit(touch(ImageState::Pending));
    }
    let busy = service
        .retire_image(&administrator(), &created.id)
        .await
        .unwrap_err();
    assert_eq!(
        busy.to_string(),
        format!("image {} is being changed by others: retry", created.id)
    );
}

/// A tenant chooses names, never ids: what it requests neither takes an id of the catalog nor meets the images of others.
#[tokio::test]
async fn names_are_scoped_to_the_project_and_ids_are_the_systems() {
    let service = loaded().await;
    let platform = user_with_role("platform-administrator", Scope::Global);
    let mut ids = BTreeSet::new();
    let projects = [(1, 1), (1, 2), (2, 1)];
    for (number, owner) in projects.into_iter().enumerate() {
        let mut new = new_image();
        new.name = Name::new("debian-14").unwrap();
        new.owner.organization = organization(owner.0);
        new.owner.project = project(owner.1);
        let created = service.add_uncharged(&platform, &new).await.unwrap();
        assert_eq!(created.name, "debian-14");
        assert!(uuid::Uuid::try_parse(created.id.as_str()).is_ok());
        ids.insert(created.id);
        assert_eq!(ids.len(), number + 1, "each project has its own");
    }
    // The operator can still use the id.
    let with_debian = EXAMPLE.replace("\"acme-golden-7\"", "\"debian-14\"");
    service.load(&with_debian).await.unwrap();
    assert!(service.image(&platform, &image_id("debian-14")).is_some());
}

#[tokio::test]
async fn image_is_shared_with_its_organization_on_purpose_only() {
    let (service, created) = with_image().await;
    let neighbour = user_with_role("project-user", Scope::Project(organization(1), project(2)));
    assert!(service.image(&neighbour, &created.id).is_none());
    for _ in 0..2 {
        let shared = service.share_image(&administrator(), &created.id).await;
        assert_eq!(
            shared.unwrap().visibility,
            Visibility::Organization(organization(1))
        );
    }
    assert!(service.image(&neighbour, &created.id).is_some());
    let stranger = user_with_role("project-user", Scope::Project(organization(2), project(1)));
    assert!(service.image(&stranger, &created.id).is_none());
    // It is still the image of its project: others neither retire it nor have to avoid its name.
    let refused = service.retire_image(&neighbour, &created.id).await;
    assert!(matches!(refused, Err(ImageError::Refused(_))));
    let again = service.add_uncharged(&administrator(), &new_image()).await;
    assert_eq!(again.unwrap().id, created.id, "a repeated request");
}

/// Who names the native image decides whose disk is launched.
#[tokio::test]
async fn only_the_image_controller_records_what_an_image_was_made_into() {
    let (service, created) = with_image().await;
    let steps = [
        SnapshotProgress::Started(native()),
        SnapshotProgress::Ready,
        SnapshotProgress::Failed,
    ];
    let mut roles = 0;
    for role in fleetwright_identity::Roles::built_in().iter() {
        for (owner, project_number) in [(1, 1), (1, 2), (2, 1)] {
            let scope = match role.level() {
                Level::Global => Scope::Global,
                Level::Organization => Scope::Organization(organization(owner)),
                Level::Project => Scope::Project(organization(owner), project(project_number)),
            };
            let principal = user_with_role(role.name().as_str(), scope);
            for step in &steps {
                let error = service
                    .set_progress(&principal, &created.id, step)
                    .await
                    .unwrap_err();
                let expected = match service.image(&principal, &created.id) {
                    Some(_) => matches!(error, ImageError::Refused(_)),
                    None => matches!(error, ImageError::NotFound(_)),
                };
                assert!(expected, "{} in {scope}: {error}", role.name());
            }
            roles += 1;
        }
    }
    assert_eq!(roles, 15);
    // No further role can have the permission, whatever its level is.
    for level in [Level::Global, Level::Organization, Level::Project] {
        let permission = Permission::new(Verb::Update, Resource::NativeImages).unwrap();
        let name = fleetwright_identity::RoleName::new("maker").unwrap();
        let refused = fleetwright_identity::Role::new(name, level, [permission]).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "role maker grants permission to update native images, which only services of this system have; remove it"
        );
    }
    let stored = service.image(&administrator(), &created.id).unwrap();
    assert_eq!(stored, created, "nothing was written");
    let changed = service
        .set_progress(&image_controller(), &created.id, &steps[0])
        .await;
    assert_eq!(changed.unwrap().state, ImageState::Creating);
}
