//! Images that tenants have made of their servers.

use super::*;
use crate::{ids::RegionId, name::Name, testing::ContendedStore};

fn image_id(id: &str) -> ImageId {
    ImageId::new(id).unwrap()
}

fn native() -> fleetwright::ImageId {
    fleetwright::ImageId::new("ami-7").unwrap()
}

fn boss() -> Principal {
    user_with_role(
        "organization-administrator",
        Scope::Organization(organization(1)),
    )
}

fn new_image() -> NewImage {
    NewImage {
        id: image_id("snap-1"),
        name: Name::new("golden").unwrap(),
        organization: organization(1),
        region: RegionId::new("north").unwrap(),
        source: image_id("ubuntu-24.04-arm"),
    }
}

async fn loaded() -> CatalogService {
    let keeper = open(&store()).await;
    keeper.load(EXAMPLE).await.unwrap();
    keeper
}

#[tokio::test]
async fn an_image_is_made_step_by_step_and_asking_again_makes_no_other() {
    let keeper = loaded().await;
    let made = keeper.add_image(&boss(), &new_image()).await.unwrap();
    assert_eq!(
        (made.state, made.architecture),
        (ImageState::Pending, Architecture::Aarch64)
    );
    assert_eq!(made.visibility, Visibility::Organization(organization(1)));
    assert_eq!(keeper.add_image(&boss(), &new_image()).await.unwrap(), made);
    assert!(made.check_offered().is_err());

    let id = image_id("snap-1");
    let early = keeper
        .set_progress(&boss(), &id, &SnapshotProgress::Ready)
        .await
        .unwrap_err();
    assert_eq!(
        early.to_string(),
        "image snap-1 is pending: it does not become ready"
    );
    let begun = SnapshotProgress::Started(native());
    for _ in 0..2 {
        let made = keeper.set_progress(&boss(), &id, &begun).await.unwrap();
        assert_eq!(made.state, ImageState::Creating);
    }
    let other = SnapshotProgress::Started(fleetwright::ImageId::new("ami-8").unwrap());
    assert!(
        keeper.set_progress(&boss(), &id, &other).await.is_err(),
        "it is not made twice"
    );
    for _ in 0..2 {
        let made = keeper
            .set_progress(&boss(), &id, &SnapshotProgress::Ready)
            .await
            .unwrap();
        assert_eq!(made.check_offered(), Ok(()));
    }
    assert!(keeper.set_progress(&boss(), &id, &begun).await.is_err());
    assert!(
        keeper
            .set_progress(&boss(), &id, &SnapshotProgress::Failed)
            .await
            .is_err()
    );
    let again = keeper.add_image(&boss(), &new_image()).await.unwrap();
    assert_eq!(again.state, ImageState::Ready, "the one there is");

    let mut other = new_image();
    other.name = Name::new("silver").unwrap();
    let taken = keeper.add_image(&boss(), &other).await.unwrap_err();
    assert_eq!(
        taken.to_string(),
        "another image has the id snap-1: choose another id"
    );
    other.source = image_id("never-was");
    let none = keeper.add_image(&boss(), &other).await.unwrap_err();
    assert_eq!(none.to_string(), "there is no image never-was");
}

#[tokio::test]
async fn no_file_touches_an_image_that_was_made() {
    let keeper = loaded().await;
    let made = keeper.add_image(&boss(), &new_image()).await.unwrap();
    assert_eq!(keeper.load(EXAMPLE).await.unwrap(), []);
    keeper.load(&without("ubuntu-24.04-arm")).await.unwrap();
    assert_eq!(keeper.image(&boss(), &made.id), Some(made));
    let stolen = EXAMPLE.replace("\"acme-golden-7\"", "\"snap-1\"");
    let error = keeper.load(&stolen).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("id of image snap-1: a tenant has it already: want another id"),
        "{error}"
    );
    // Of a retired source too: its server still stands.
    let mut next = new_image();
    next.id = image_id("snap-2");
    assert!(keeper.add_image(&boss(), &next).await.is_ok());
}

#[tokio::test]
async fn an_image_that_was_made_is_retired_by_its_owner_and_one_of_the_file_is_not() {
    let keeper = loaded().await;
    keeper.add_image(&boss(), &new_image()).await.unwrap();
    let id = image_id("snap-1");
    assert!(keeper.retire_image(&boss(), &id).await.unwrap().retired);
    assert!(
        keeper.retire_image(&boss(), &id).await.unwrap().retired,
        "asked twice"
    );
    let listed = keeper.images(&boss()).unwrap();
    assert!(listed.iter().all(|image| image.id != id));
    assert!(keeper.image(&boss(), &id).unwrap().retired);
    let platform = user_with_role("platform-administrator", Scope::Global);
    let of_file = keeper
        .retire_image(&platform, &image_id("ubuntu-24.04"))
        .await
        .unwrap_err();
    assert_eq!(
        of_file.to_string(),
        "image ubuntu-24.04 is in the catalog's file: change it there"
    );
}

#[tokio::test]
async fn only_its_organization_sees_it_and_only_some_change_it() {
    let keeper = loaded().await;
    keeper.add_image(&boss(), &new_image()).await.unwrap();
    let id = image_id("snap-1");
    let stranger = user_with_role(
        "organization-administrator",
        Scope::Organization(organization(2)),
    );
    let member = user_with_role("project-user", Scope::Project(organization(1), project(1)));
    assert!(keeper.image(&member, &id).is_some());
    assert!(keeper.image(&stranger, &id).is_none());
    let refused = keeper.retire_image(&member, &id).await.unwrap_err();
    assert!(matches!(refused, ImageError::Refused(_)), "{refused}");
    for hidden in [&id, &image_id("never-was")] {
        let error = keeper.retire_image(&stranger, hidden).await.unwrap_err();
        assert_eq!(error.to_string(), format!("there is no image {hidden}"));
    }
    let refused = keeper.add_image(&stranger, &new_image()).await.unwrap_err();
    assert!(matches!(refused, ImageError::Refused(_)), "{refused}");
    // What one tenant's image was made of is not told to another.
    let mut theirs = new_image();
    theirs.organization = organization(2);
    theirs.id = image_id("snap-9");
    theirs.source = id;
    let error = keeper.add_image(&stranger, &theirs).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no image snap-1");
}

#[tokio::test]
async fn others_who_write_the_image_are_read_again() {
    let meddler = Arc::new(ContendedStore::new(store()));
    let (keeper, _) = CatalogService::open(meddler.clone()).await.unwrap();
    keeper.load(EXAMPLE).await.unwrap();
    let made = keeper.add_image(&boss(), &new_image()).await.unwrap();
    let touch = |state| {
        let mut image = made.clone();
        image.state = state;
        let id = RecordId::new("image", "snap-1").unwrap();
        Transaction::new().put(id, serde_json::to_value(image).unwrap())
    };
    meddler.before_next_commit(touch(ImageState::Failed));
    let begun = SnapshotProgress::Started(native());
    let late = keeper
        .set_progress(&boss(), &made.id, &begun)
        .await
        .unwrap_err();
    assert_eq!(
        late.to_string(),
        "image snap-1 is failed: it does not become creating"
    );
    for _ in 0..9 {
        meddler.before_next_commit(touch(ImageState::Pending));
    }
    let busy = keeper.retire_image(&boss(), &made.id).await.unwrap_err();
    assert_eq!(
        busy.to_string(),
        "image snap-1 is being changed by others: ask again"
    );
}
