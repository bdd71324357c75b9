"""Kind of photo of each scene in the sets of the panel. For groups that belong together see `eval.scenes_shown`."""

FACADE, PRINT, SOLID, INDOOR, DARK, SMALL, STRIP, TURNED = KINDS = (
    "façade",
    "flat print",
    "solid thing",
    "indoor",
    "dark or other camera",
    "small box",
    "strip",
    "turned",
)
"""The last three are kinds of queries, the others of their subjects."""

_LANDMARKS = {
    INDOOR: (
        "kitchen g_st_DFW_desk g_st_DFW_door g_st_DFW_four g_st_DFW_window g_st_SVA_chessgirl g_st_office "
        "g_st_SPHP_garden g_tri_minecraft_cave1"
    ),
    SOLID: (
        "monstree kermit g_st_fcase_sculpture g_st_plantain g_tri_bobcats g_tri_rockview g_tri_skull g_tri_triflowers "
        "g_scene_0 g_scene_1"
    ),
}

# Groups in the table of unlabelled photos, of one object or place each, by name.
_GROUPS = {
    SOLID: (
        "fox:images|front:front|turtle:turtle|monument:monument|olsson:5|olsson:6|olsson:8|gtpairs:Mount Rushmore|"
        "magsacf:box|magsacf:dino1|magsacf:dino2|magsacf:head|magsacf:leafs|magsacf:plant|magsacf:temple1|"
        "magsacf:temple2|magsacf:shout|magsacf:wash|simbench:ukb2"
    ),
    PRINT: "magsacf:booksh|magsach:LePoint2|immpairs:fresco|simbench:ukb0|simbench:ukb1",
    INDOOR: "avatar:sfm_dom|immpairs:indoor|magsacf:corr|magsacf:glasscasea",
    FACADE: (
        "olsson:1|olsson:2|olsson:7|olsson:11|cmsc:cmsc|densematch:images|dim:piazza_san_marco|"
        "dim:st_pauls_cathedral|glandm:big_ben|glandm:notre_dame|gtpairs:Episcopal Gaudi|gtpairs:Notre Dame|"
        "lightglue:assets|loftr:london_bridge|loftr:piazza_san_marco|loftr:st_pauls_cathedral|"
        "loftr:united_states_capitol|magsacf:Brussels|magsacf:Kyoto|magsacf:Leuven1|magsacf:Leuven2|"
        "magsacf:barrsmith|magsacf:bonhall|magsacf:bonython|magsacf:castle|magsacf:elderhalla|magsacf:hartley|"
        "magsacf:johnssona|magsacf:kampa|magsacf:ladysymon|magsacf:napierb|magsacf:neem|magsacf:nese|"
        "magsacf:oldclassicswing|magsacf:physics|magsacf:rotunda|magsacf:unihouse|magsacf:valbonne|"
        "magsach:BostonLib|magsach:BruggeSquare|magsach:Brussels|nepal:Bhairavnath|nepal:Gopinath|nepal:Nyatapola|"
        "nepal:VatshalaDevi|roundchurch:compEx1|street2:street2"
    ),
}

LANDMARKS = {scene: kind for kind, scenes in _LANDMARKS.items() for scene in scenes.split()}
"""Kind by scene of `landmarks`; the default is a façade or another place outdoors."""

GROUPS = {group: kind for kind, groups in _GROUPS.items() for group in groups.split("|")}
"""Kind by group of the table of unlabelled photos."""

LOOSE = frozenset(["book shelf", "lecture room", "le point"])
"""Scenes of `eval.scenes_shown` whose groups overlap only in part: each group is a separate scene."""

BUILDINGS = (
    frozenset(["009", "039", "040"]),
    frozenset(["044", "045", "046", "047", "048"]),
    frozenset(["021", "022"]),
)
"""Buildings of `wild` that appear in photos of each other, by inspection."""
